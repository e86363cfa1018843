//! What a document is: by its first bytes, then by the kind it was declared with. Never reads more than it is
//! given.

use crate::charset;

/// How many of the first bytes are worth looking at.
pub const HEAD: usize = 8 << 10;

/// MIME type of Word documents.
pub const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

/// Content that can be turned into text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// PDF.
    Pdf,
    /// HTML.
    Html,
    /// Word since 2007.
    Docx,
    /// Text as it is: plain, Markdown, CSV, JSON, …
    Text,
}

impl Kind {
    /// The MIME type under which such content is kept. `declared` tells one text from another.
    pub fn mime(self, declared: &str) -> String {
        match self {
            Self::Pdf => PDF.to_owned(),
            Self::Html => HTML.to_owned(),
            Self::Docx => DOCX.to_owned(),
            Self::Text => match essence(declared) {
                text if text.starts_with("text/") && text != HTML => text,
                data if DATA.contains(&data.as_str()) => data,
                _ => "text/plain".to_owned(),
            },
        }
    }
}

/// What people call a MIME type; itself where they have no word for it.
pub fn name(mime: &str) -> &str {
    let known = NAMES.iter().find(|(known, _)| *known == mime);
    known.map_or(mime, |(_, name)| name)
}

/// The MIME type that the name of a file declares; empty where it declares none.
pub fn declared(name: &str) -> &'static str {
    let Some((_, ending)) = name.rsplit_once('.') else {
        return "";
    };
    let ending = ending.to_ascii_lowercase();
    let known = ENDINGS.iter().find(|(known, _)| *known == ending);
    known.map_or("", |(_, mime)| mime)
}

/// Why content cannot be turned into text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is nothing.
    #[error("is empty")]
    Empty,
    /// The declared kind is something else than the content.
    #[error("is declared as a PDF but is not a PDF")]
    NoPdf,
    /// As above.
    #[error("is declared as a Word document but is not a Word document")]
    NoDocx,
    /// Its end is missing.
    #[error("is damaged or incomplete")]
    Damaged,
    /// It opens with a password only.
    #[error("is encrypted; save a copy that opens without a password")]
    Encrypted,
    /// Known, and not read.
    #[error("is {0}, which is not read; convert it to PDF or text")]
    NotRead(&'static str),
    /// Neither text nor anything known.
    #[error("is binary, not text")]
    Binary,
}

const PDF: &str = "application/pdf";
const HTML: &str = "text/html";
/// MIME type of Markdown.
pub const MARKDOWN: &str = "text/markdown";

/// Text that is not called so.
const DATA: [&str; 4] = [
    "application/json",
    "application/xml",
    "application/csv",
    "application/yaml",
];

/// What people call them.
const NAMES: &[(&str, &str)] = &[
    (PDF, "PDF"),
    (DOCX, "Word"),
    (HTML, "HTML"),
    ("application/xhtml+xml", "HTML"),
    (MARKDOWN, "Markdown"),
    ("text/csv", "CSV"),
    ("application/csv", "CSV"),
    ("text/tab-separated-values", "TSV"),
    ("application/json", "JSON"),
    ("application/xml", "XML"),
    ("application/yaml", "YAML"),
    ("text/plain", "text"),
    ("text/javascript", "JavaScript"),
    ("text/x-c", "C"),
    ("text/x-c++", "C++"),
    ("text/x-csharp", "C#"),
    ("text/x-go", "Go"),
    ("text/x-java", "Java"),
    ("text/x-kotlin", "Kotlin"),
    ("text/x-php", "PHP"),
    ("text/x-python", "Python"),
    ("text/x-ruby", "Ruby"),
    ("text/x-rust", "Rust"),
    ("text/x-scala", "Scala"),
    ("text/x-sh", "shell"),
    ("text/x-swift", "Swift"),
    ("text/x-toml", "TOML"),
    ("text/x-typescript", "TypeScript"),
];

/// Endings of names of files, and what they declare.
const ENDINGS: &[(&str, &str)] = &[
    ("pdf", PDF),
    ("docx", DOCX),
    ("html", HTML),
    ("htm", HTML),
    ("xhtml", "application/xhtml+xml"),
    ("md", MARKDOWN),
    ("markdown", MARKDOWN),
    ("csv", "text/csv"),
    ("tsv", "text/tab-separated-values"),
    ("json", "application/json"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("txt", "text/plain"),
    ("c", "text/x-c"),
    ("h", "text/x-c"),
    ("cc", "text/x-c++"),
    ("cpp", "text/x-c++"),
    ("hpp", "text/x-c++"),
    ("cs", "text/x-csharp"),
    ("go", "text/x-go"),
    ("java", "text/x-java"),
    ("js", "text/javascript"),
    ("mjs", "text/javascript"),
    ("kt", "text/x-kotlin"),
    ("php", "text/x-php"),
    ("py", "text/x-python"),
    ("rb", "text/x-ruby"),
    ("rs", "text/x-rust"),
    ("scala", "text/x-scala"),
    ("sh", "text/x-sh"),
    ("swift", "text/x-swift"),
    ("toml", "text/x-toml"),
    ("ts", "text/x-typescript"),
];

/// First bytes of what is known and not read.
const NOT_READ: &[(&[u8], &str)] = &[
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "an Office file from before 2007",
    ),
    (b"{\\rtf", "an RTF document"),
    (b"\x89PNG\r\n", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"II*\0", "an image"),
    (b"MM\0*", "an image"),
    (b"\x1f\x8b", "a compressed file"),
    (b"BZh", "a compressed file"),
    (b"\xfd7zXZ\0", "a compressed file"),
    (b"\x28\xb5\x2f\xfd", "a compressed file"),
    (b"7z\xbc\xaf\x27\x1c", "an archive"),
    (b"Rar!\x1a\x07", "an archive"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\0", "a database"),
];

/// What the content is. `head`: its first bytes ([`HEAD`] of them if there are so many); `declared`: the MIME
/// type it came with, which may be empty.
///
/// # Errors
/// [`Refusal`]: it is empty, of a kind that is not read, not of the kind that it is declared as, or no text.
pub fn detect(head: &[u8], declared: &str) -> Result<Kind, Refusal> {
    let declared = essence(declared);
    if head.is_empty() {
        return Err(Refusal::Empty);
    }
    if is_pdf(head, declared == PDF) {
        return Ok(Kind::Pdf);
    }
    if head.starts_with(b"PK\x03\x04") {
        return zipped(head, &declared);
    }
    if let Some((_, what)) = NOT_READ.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Err(Refusal::NotRead(what));
    }
    match declared.as_str() {
        PDF => return Err(Refusal::NoPdf),
        DOCX => return Err(Refusal::NoDocx),
        _ => {}
    }
    if !looks_like_text(head) {
        return Err(Refusal::Binary);
    }
    if let Some(what) = packed_mail(head) {
        return Err(Refusal::NotRead(what));
    }
    if is_html(head) || matches!(declared.as_str(), HTML | "application/xhtml+xml") {
        return Ok(Kind::Html);
    }
    Ok(Kind::Text)
}

/// The MIME type without its parameters.
fn essence(declared: &str) -> String {
    let essence = declared.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

fn contains(head: &[u8], part: &[u8]) -> bool {
    head.windows(part.len()).any(|window| window == part)
}

/// Some writers put a few bytes before the marker.
fn is_pdf(head: &[u8], declared: bool) -> bool {
    const MARKER: &[u8] = b"%PDF-";
    let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
    let start = head.iter().position(|byte| !blank(byte));
    let marked = start.is_some_and(|start| head[start..].starts_with(MARKER));
    marked || declared && contains(&head[..head.len().min(1024)], MARKER)
}

/// What stands in e-books and OpenDocument files: their type as the first entry, or, where a writer has compressed that or put it
/// elsewhere, the list of what they hold.
const PACKED: [&[u8]; 3] = [
    b"mimetypeapplication/",
    b"META-INF/container.xml",
    b"META-INF/manifest.xml",
];

fn zipped(head: &[u8], declared: &str) -> Result<Kind, Refusal> {
    if declared == DOCX || has_folder(head, b"word") {
        return Ok(Kind::Docx);
    }
    let what = if has_folder(head, b"xl") {
        "a spreadsheet"
    } else if has_folder(head, b"ppt") {
        "a presentation"
    } else if PACKED.iter().any(|part| contains(head, part)) {
        "an e-book or OpenDocument file"
    } else {
        "an archive"
    };
    Err(Refusal::NotRead(what))
}

/// Whether a name of an entry begins with a folder. Some writers part folders by backslashes. A longer word that ends so is another
/// folder.
fn has_folder(head: &[u8], folder: &[u8]) -> bool {
    let mut names = head.windows(folder.len() + 2);
    names.any(|window| match window {
        [before, name @ .., b'/' | b'\\'] => name == folder && !before.is_ascii_alphanumeric(),
        _ => false,
    })
}

/// A message with attachments in base64, or a page that was saved as one, as browsers do and wikis that call it a Word document: as a
/// text it would be neither. Other messages are texts.
fn packed_mail(head: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(head).to_ascii_lowercase();
    let mut lines = text.lines();
    // The first line is a header, or what a mailbox writes before one.
    let is_header = |line: &str| {
        let name = line.split_once(':').map_or("", |(name, _)| name);
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let begins = lines
        .next()
        .is_some_and(|line| line.starts_with("from ") || is_header(line));
    let has = |start: &str| text.lines().any(|line| line.starts_with(start));
    if !begins || !has("mime-version:") {
        return None;
    }
    let related = has("content-type: multipart/related");
    // Nobody sent a page, and to nobody.
    match related && !has("received:") && !has("to:") {
        true => Some("a web page saved with its pictures (MHTML)"),
        false => (related || has("content-transfer-encoding: base64"))
            .then_some("an e-mail with attachments"),
    }
}

fn is_html(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&head[..head.len().min(1024)]).to_ascii_lowercase();
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    if let Some((declaration, after)) = rest.split_once("?>")
        && declaration.starts_with("<?xml")
    {
        rest = after.trim_start();
    }
    while let Some(after) = rest.strip_prefix("<!--") {
        rest = after
            .split_once("-->")
            .map_or("", |(_, after)| after.trim_start());
    }
    rest.starts_with("<!doctype html") || rest.starts_with("<html")
}

/// Text has no NUL (but UTF-16 has) and few other control characters.
fn looks_like_text(head: &[u8]) -> bool {
    let marked = head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff");
    if marked || charset::of_pairs(head).is_some() {
        return true;
    }
    let odd = |byte: &&u8| **byte < 0x20 && !matches!(**byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b);
    !head.contains(&0) && head.iter().filter(odd).count() * 20 <= head.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_speaks_before_the_declared_kind() {
        assert_eq!(detect(b" \n%PDF-1.7 ...", "text/plain"), Ok(Kind::Pdf));
        assert_eq!(detect(b"junk\n%PDF-1.7", "application/pdf"), Ok(Kind::Pdf));
        assert_eq!(detect(b"the %PDF- marker", "text/plain"), Ok(Kind::Text));
        assert_eq!(detect(b"<!DOCTYPE html><p>", "text/plain"), Ok(Kind::Html));
        assert_eq!(detect(b"<!-- x --> <HTML>", ""), Ok(Kind::Html));
        assert_eq!(
            detect(b"<p>piece</p>", "text/html; charset=utf-8"),
            Ok(Kind::Html)
        );
        assert_eq!(detect(b"# Title", "text/markdown"), Ok(Kind::Text));
        assert_eq!(detect(b"a,b\n1,2", "text/csv"), Ok(Kind::Text));
        assert_eq!(detect(b"\xff\xfeh\0i\0", "text/plain"), Ok(Kind::Text));
        assert_eq!(detect(&b"a\0".repeat(16), "text/plain"), Ok(Kind::Text));
        assert_eq!(
            detect(b"PK\x03\x04....word/document.xml", ""),
            Ok(Kind::Docx)
        );
        assert_eq!(
            detect(b"PK\x03\x04....[Content_Types].xml", DOCX),
            Ok(Kind::Docx)
        );
    }

    #[test]
    fn messages_with_attachments_are_no_texts() {
        let mail = |kind: &str, encoding: &str| {
            format!(
                "Received: from a by b\r\nFrom: Ann <a@b.c>\r\nMIME-Version: 1.0\r\n\
                 Content-Type: multipart/{kind}; boundary=x\r\n\r\n--x\r\n\
                 Content-Type: text/html\r\nContent-Transfer-Encoding: {encoding}\r\n\r\nPGh0\r\n"
            )
        };
        for (kind, encoding) in [("mixed", "base64"), ("related", "quoted-printable")] {
            let told = detect(mail(kind, encoding).as_bytes(), "message/rfc822").unwrap_err();
            assert_eq!(told, Refusal::NotRead("an e-mail with attachments"));
        }
        let page = "Date: Mon, 2 Mar 2026 10:00:00 +0000 (UTC)\r\nMessage-ID: <1@wiki>\r\nSubject: Exported\r\n\
            MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=x\r\n\r\n--x\r\n";
        let told = detect(page.as_bytes(), "application/msword").unwrap_err();
        assert!(
            told.to_string().contains("saved with its pictures"),
            "{told}"
        );
        let plain = mail("alternative", "quoted-printable");
        assert_eq!(detect(plain.as_bytes(), ""), Ok(Kind::Text));
        // About mail, and no mail.
        let about = format!("How mail is written\n\n{}", mail("mixed", "base64"));
        assert_eq!(detect(about.as_bytes(), "text/plain"), Ok(Kind::Text));
    }

    #[test]
    fn folders_of_archives_are_known_by_their_whole_name() {
        let zip = |name: &str| format!("PK\x03\x04........\0{name}");
        let of = |name: &str| detect(zip(name).as_bytes(), "");
        assert_eq!(of("word\\document.xml"), Ok(Kind::Docx));
        assert_eq!(of("/word/document.xml"), Ok(Kind::Docx));
        assert_eq!(of("keyword/a.txt"), Err(Refusal::NotRead("an archive")));
        let book = Err(Refusal::NotRead("an e-book or OpenDocument file"));
        for name in ["mimetypeapplication/epub+zip", "META-INF/container.xml"] {
            assert_eq!(of(name), book, "{name}");
        }
        assert_eq!(
            of("META-INF/MANIFEST.MF"),
            Err(Refusal::NotRead("an archive"))
        );
        assert_eq!(
            of("xl\\workbook.xml"),
            Err(Refusal::NotRead("a spreadsheet"))
        );
    }

    #[test]
    fn a_name_declares_what_content_does_not_tell() {
        assert_eq!(declared("a.b/Notes.MD"), MARKDOWN);
        assert_eq!(declared("README"), "");
        assert_eq!(declared("archive.tar.gz"), "");
        assert_eq!(Kind::Text.mime(declared("a.csv")), "text/csv");
        assert_eq!(Kind::Text.mime("application/json; x=y"), "application/json");
        assert_eq!(Kind::Text.mime("image/png"), "text/plain");
        assert_eq!(Kind::Text.mime(""), "text/plain");
        assert_eq!(Kind::Pdf.mime("text/csv"), "application/pdf");
        assert_eq!((name("image/png"), name(DOCX)), ("image/png", "Word"));
        for (ending, mime) in ENDINGS {
            assert_eq!(declared(&format!("x.{ending}")), *mime);
            assert!(!name(mime).contains('/'), "{mime}");
        }
    }

    #[test]
    fn what_is_not_read_is_refused_by_name() {
        assert_eq!(detect(b"", "text/plain"), Err(Refusal::Empty));
        assert_eq!(detect(b"hello", "application/pdf"), Err(Refusal::NoPdf));
        assert_eq!(detect(b"hello", DOCX), Err(Refusal::NoDocx));
        assert_eq!(detect(b"ab\0cd", "text/plain"), Err(Refusal::Binary));
        assert_eq!(detect(&[1; 100], "text/plain"), Err(Refusal::Binary));
        let refused = |head: &[u8]| detect(head, "application/pdf").unwrap_err().to_string();
        assert!(refused(b"\x89PNG\r\n\x1a\n").contains("an image"));
        assert!(refused(b"PK\x03\x04....xl/workbook.xml").contains("a spreadsheet"));
        assert!(refused(b"PK\x03\x04....a.txt").contains("an archive"));
    }
}
