//! What a document calls itself: in the information of a PDF, the head of a web page, the first heading of
//! Markdown. Only looks; what is not as expected is no title.

use crate::charset;
use crate::kind::{Kind, MARKDOWN};
use crate::packed::{self, find};
use crate::syntax::{self, hex, literal, number, skip};
use crate::text::leniently;

/// Longest title in characters; the rest is cut off.
const LONGEST: usize = 200;
/// Bytes in which the title of a page or a text stands, if it has one.
const HEAD: usize = 64 << 10;
/// Bytes of an object of a PDF that are looked at.
const OBJECT: usize = 16 << 10;

/// The title of a document, if it says one. `mime`: what it is kept as.
pub fn title(kind: Kind, mime: &str, content: &[u8]) -> Option<String> {
    let found = match kind {
        Kind::Pdf => of_pdf(content),
        Kind::Html => of_html(&head(kind, content)),
        Kind::Text if mime == MARKDOWN => of_markdown(&head(kind, content)),
        Kind::Text | Kind::Docx => None,
    };
    found.and_then(|text| tidy(&text))
}

/// On one line and not too long; `None` for what names nothing.
fn tidy(text: &str) -> Option<String> {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let whole = words.join(" ");
    let whole = whole.strip_prefix("Microsoft Word - ").unwrap_or(&whole);
    let names = whole.chars().any(char::is_alphanumeric)
        && !whole.contains('\u{fffd}')
        && !["untitled", "untitled document"].contains(&whole.to_lowercase().as_str());
    names.then(|| whole.chars().take(LONGEST).collect())
}

/// The beginning as text; what cannot be read shows as a sign for it.
fn head(kind: Kind, content: &[u8]) -> String {
    let head = &content[..content.len().min(HEAD)];
    let declared = match kind {
        Kind::Html => charset::of_html(head),
        _ => None,
    };
    leniently(head, declared).0
}

fn of_html(text: &str) -> Option<String> {
    // Of the same length, so that places agree.
    let lower = text.to_ascii_lowercase();
    let open = lower.find("<title")?;
    let begin = open + lower[open..].find('>')? + 1;
    let end = begin + lower[begin..].find("</title")?;
    Some(unescape(&text[begin..end]))
}

/// The entities that stand in titles.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let entity = rest[1..]
            .split_once(';')
            .filter(|(name, _)| name.len() < 12);
        match entity.and_then(|(name, after)| Some((character(name)?, after))) {
            Some((character, after)) => {
                out.push(character);
                rest = after;
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn character(entity: &str) -> Option<char> {
    if let Some(number) = entity.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code);
    }
    Some(match entity {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "copy" => '©',
        _ => return None,
    })
}

/// The title of the front matter, else the first heading.
fn of_markdown(text: &str) -> Option<String> {
    let (front, rest) = front_matter(text);
    // An empty one stands: the file has a name.
    if let Some(title) = title_of(front) {
        return Some(title);
    }
    let (mut fence, mut before) = (None, "");
    for line in rest.lines() {
        let bare = line.trim();
        if let Some(open) = fence {
            if closes(bare, open) {
                fence = None;
            }
        } else if let Some(open) = opens(bare) {
            fence = Some(open);
        } else if let Some(heading) = heading(bare) {
            return Some(heading.to_owned());
        } else if !before.is_empty() && underlines(bare) {
            return Some(before.to_owned());
        }
        before = bare;
    }
    None
}

/// What stands between lines of dashes, or of plus signs, at the beginning, and the rest. A line without another one is a rule.
fn front_matter(text: &str) -> (&str, &str) {
    let next = |from: usize| text[from..].find('\n').map(|at| from + at + 1);
    let none = ("", text);
    let Some(begin) = next(0) else {
        return none;
    };
    let mark = text[..begin].trim_end();
    if !matches!(mark, "---" | "+++") {
        return none;
    }
    let mut at = begin;
    while at < text.len() {
        let end = next(at).unwrap_or(text.len());
        let line = text[at..end].trim_end();
        if line == mark || mark == "---" && line == "..." {
            return (&text[begin..at], &text[end..]);
        }
        // Behind a rule stands a blank line.
        if at == begin && line.is_empty() {
            return none;
        }
        at = end;
    }
    none
}

/// The title in YAML or TOML, which may stand on the lines below its key.
fn title_of(front: &str) -> Option<String> {
    let mut lines = front.lines();
    let value = lines.by_ref().find_map(|line| {
        let value = line.strip_prefix("title")?.trim_start();
        value.strip_prefix([':', '=']).map(str::trim)
    })?;
    if !value.starts_with(['>', '|']) {
        return Some(value.trim_matches(['"', '\'']).to_owned());
    }
    let below = lines.take_while(|line| line.is_empty() || line.starts_with([' ', '\t']));
    let words: Vec<&str> = below.map(str::trim).collect();
    Some(words.join(" "))
}

/// What begins a block of code: three or more of one sign.
fn opens(line: &str) -> Option<&str> {
    let sign = line
        .chars()
        .next()
        .filter(|sign| matches!(sign, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(sign).len();
    (length >= 3 && !line[length..].contains('`')).then(|| &line[..length])
}

/// Whether a line ends such a block: it has as many of the sign, and nothing else.
fn closes(line: &str, fence: &str) -> bool {
    line.strip_prefix(fence)
        .is_some_and(|rest| rest.trim_start_matches(['`', '~']).is_empty())
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let marks = line.len() - text.len();
    let is_heading = (1..=6).contains(&marks) && text.starts_with([' ', '\t']);
    is_heading.then(|| text.trim().trim_end_matches('#').trim_end())
}

/// `====` below a line makes it a heading.
fn underlines(line: &str) -> bool {
    line.len() >= 2 && line.bytes().all(|byte| byte == b'=')
}

/// `/Title` of the information that the last trailer names. Of an encrypted file nothing can be told.
fn of_pdf(pdf: &[u8]) -> Option<String> {
    if find(pdf, b"/Encrypt").is_some() {
        return None;
    }
    let at = pdf.windows(5).rposition(|five| five == b"/Info")?;
    let reference = syntax::reference(&pdf[at + 5..])?;
    let object = syntax::object(pdf, reference);
    object.and_then(title_in).or_else(|| {
        packed::objects(pdf).find_map(|objects| title_in(packed_object(&objects, reference.0)?))
    })
}

/// An object of an unpacked stream, by its number.
fn packed_object(objects: &[u8], wanted: u64) -> Option<&[u8]> {
    let (mut rest, mut found, mut last) = (objects, None, 0);
    // Pairs of numbers come first; where they end, the objects begin.
    while let Some((object, after)) = number(rest) {
        let Some((place, after)) = number(after) else {
            break;
        };
        if place < last {
            break;
        }
        last = place;
        if object == wanted {
            found = usize::try_from(place).ok();
        }
        rest = after;
    }
    let first = objects.len() - skip(rest).len();
    objects.get(first.checked_add(found?)?..)
}

fn title_in(object: &[u8]) -> Option<String> {
    let object = &object[..object.len().min(OBJECT)];
    let end = find(object, b"endobj").unwrap_or(object.len());
    let dictionary = &object[..end];
    let at = find(dictionary, b"/Title")?;
    let value = skip(&dictionary[at + 6..]);
    match value.first()? {
        b'(' => Some(decoded(&literal(&value[1..]).0)),
        b'<' if value.get(1) != Some(&b'<') => Some(decoded(&hex(&value[1..]).0)),
        _ => None,
    }
}

/// UTF-16 or UTF-8 with their marks; else the encoding of PDF, which is Latin-1 but for signs that titles rarely have.
fn decoded(bytes: &[u8]) -> String {
    match bytes {
        [0xfe, 0xff, rest @ ..] => {
            let units: Vec<u16> = rest
                .chunks_exact(2)
                .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
                .collect();
            String::from_utf16_lossy(&units)
        }
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => bytes.iter().map(|byte| latin(*byte)).collect(),
    }
}

fn latin(byte: u8) -> char {
    match byte {
        0x84 => '—',
        0x85 => '–',
        0x8d => '“',
        0x8e => '”',
        0x8f => '‘',
        0x90 => '’',
        0x93 => 'ﬁ',
        0x94 => 'ﬂ',
        byte => char::from(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::tests::packed;

    fn pdf(info: &str) -> Option<String> {
        let text = format!(
            "%PDF-1.4\n12 0 obj << /Title (not this) >> endobj\n2 0 obj << {info} >> endobj\n\
             trailer << /Root 1 0 R /Info 2 0 R >>\n%%EOF"
        );
        title(Kind::Pdf, "application/pdf", text.as_bytes())
    }

    #[test]
    fn a_pdf_says_its_title_in_its_information() {
        let said = |info: &str| pdf(info).unwrap_or_default();
        assert_eq!(
            said("/Author (x) /Title (Clocks \\(of\\) all (kinds))"),
            "Clocks (of) all (kinds)"
        );
        assert_eq!(said("/Title <FEFF00DC0062006500720020>"), "Über");
        assert_eq!(said("/Title (caf\\351 \\\n au\\nlait)"), "café au lait");
        assert_eq!(said("/Title (Microsoft Word - plan.doc)"), "plan.doc");
        for none in [
            "/Title ()",
            "/Title (Untitled)",
            "/Title 3 0 R",
            "/Author (x)",
            "/Title (- -)",
        ] {
            assert_eq!(pdf(none), None, "{none}");
        }
    }

    #[test]
    fn packed_information_is_found_and_encrypted_is_not_told() {
        let mut file = packed(&[
            (3, "<< /X 1 >>"),
            (7, "<< /Title (FHS 3.0) >>"),
            (8, "<< /Title (z) >>"),
        ]);
        file.extend_from_slice(b"10 0 obj << /Type /XRef /Info 7 0 R >> stream");
        let said = title(Kind::Pdf, "application/pdf", &file);
        assert_eq!(said.as_deref(), Some("FHS 3.0"));
        file.extend_from_slice(b"/Encrypt 5 0 R");
        assert_eq!(title(Kind::Pdf, "application/pdf", &file), None);
    }

    #[test]
    fn a_page_says_its_title_in_its_head() {
        let said = |page: &str| title(Kind::Html, "text/html", page.as_bytes());
        let page = "<html><HEAD><Title lang=en>\n A &amp; B &#8212; C &x; &copy;\n</TITLE>";
        assert_eq!(said(page).as_deref(), Some("A & B — C &x; ©"));
        assert_eq!(said("<html><p>no title</p>"), None);
        assert_eq!(said("<title>never closed"), None);
        let old = |page: &[u8]| title(Kind::Html, "text/html", page).unwrap_or_default();
        assert_eq!(old(b"<title>caf\xe9</title>"), "café");
        let declared = b"<meta charset=shift_jis><title>\x93\x8c\x8b\x9e</title>";
        assert_eq!(old(declared), "東京");
    }

    #[test]
    fn markdown_says_its_title_in_its_first_heading() {
        let said = |text: &str| title(Kind::Text, MARKDOWN, text.as_bytes()).unwrap_or_default();
        assert_eq!(
            said("text\n\n## How it is kept ##\n# Later"),
            "How it is kept"
        );
        assert_eq!(
            said("---\nauthor: x\ntitle: \"Plans\"\n---\n# Other"),
            "Plans"
        );
        assert_eq!(said("---\nauthor: x\n---\n# Other"), "Other");
        assert_eq!(said("```\n# comment\n```\nReal\n====\n"), "Real");
        let nested = "````md\n```\n# not this\n```\n````\n# Real";
        assert_eq!(said(nested), "Real");
        assert_eq!(said("```sh\n```sh\n# nor this\n```\n# Real"), "Real");
        assert_eq!(said("#hashtag\n\nno heading"), "");
        assert_eq!(
            said("---\ntitle: >-\n  Plans for\n  May\ntags: x\n---\n"),
            "Plans for May"
        );
        assert_eq!(said("+++\ntitle = \"Plans\"\n+++\n# Other"), "Plans");
        // A rule at the beginning is no front matter.
        assert_eq!(said("---\n\n# Real\n\n---\n\n# Other"), "Real");
        assert_eq!(said("---\n# Real\n"), "Real");
        assert_eq!(title(Kind::Text, "text/plain", b"# a comment"), None);
        let long = format!("# {}", "word ".repeat(100));
        assert_eq!(said(&long).chars().count(), LONGEST);
    }
}
