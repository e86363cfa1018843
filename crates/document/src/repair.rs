//! A PDF whose table of objects does not lead to its objects, made whole: objects are looked for, and a new table of them is
//! put behind the file. Streams that say a wrong length come again with the right one. What was cut off is not made up: a
//! file without its end, or with objects behind it, stays as it is.

use std::collections::BTreeMap;

use crate::packed::find;
use crate::syntax::{Token, entry, number, reference, skip, token};

/// Bytes of a dictionary that are looked at.
const DICTIONARY: usize = 64 << 10;
/// The highest number of an object.
const HIGHEST: u64 = 8_388_607;
/// Bytes of dictionaries that are looked at, for each byte of the file: those of whole files are looked at once.
const WORK: usize = 4;

/// An object, as it was found.
struct Place {
    at: usize,
    generation: u64,
    stream: Option<Stream>,
}

/// A stream: where its dictionary begins, and its data. `length`: what stands there for the length of the data.
struct Stream {
    dictionary: usize,
    length: Option<(usize, usize)>,
    said: Said,
    data: (usize, usize),
}

/// What a stream says of its length.
enum Said {
    Right,
    Wrong,
    /// Another object says it.
    Elsewhere(u64),
}

/// What the file says of itself as a whole.
#[derive(Default)]
struct Trailer {
    root: Option<(u64, u64)>,
    encrypt: Option<(u64, u64)>,
    info: Option<(u64, u64)>,
    /// Both parts of the file's name.
    id: Vec<Vec<u8>>,
    /// It is encrypted in a way that no reader of ours knows.
    sealed: bool,
}

/// The file from its header on with a new table of its objects; `None` where there are none, where nothing leads to the
/// pages, or where the end is missing.
pub fn repaired(pdf: &[u8]) -> Option<Vec<u8>> {
    let pdf = &pdf[find(pdf, b"%PDF-")?..];
    let end = pdf.windows(5).rposition(|here| here == b"%%EOF")?;
    let (objects, trailer) = Scan::of(pdf)?;
    // What follows an end belongs to a version of the file whose own end is missing.
    if objects.values().any(|place| place.at > end) {
        return None;
    }
    let (root, generation) = trailer.root.filter(|_| !trailer.sealed)?;
    let mut out = pdf.to_vec();
    let mut places = BTreeMap::new();
    for (number, place) in &objects {
        let wrong = place
            .stream
            .as_ref()
            .filter(|one| one.is_wrong(pdf, &objects));
        let at = match wrong {
            None => place.at,
            Some(stream) => stream.again(pdf, (*number, place.generation), &mut out),
        };
        places.insert(*number, (at, place.generation));
    }
    out.extend_from_slice(b"\n");
    let table = out.len();
    out.extend_from_slice(b"xref\n");
    let mut run: Vec<(usize, u64)> = Vec::new();
    let mut first = 0;
    for (number, place) in &places {
        if first + run.len() as u64 != *number {
            section(first, &run, &mut out);
            (first, run) = (*number, Vec::new());
        }
        run.push(*place);
    }
    section(first, &run, &mut out);
    let size = places.last_key_value().map_or(0, |(number, _)| number + 1);
    let mut end = format!("trailer\n<< /Size {size} /Root {root} {generation} R");
    for (name, at) in [("Encrypt", trailer.encrypt), ("Info", trailer.info)] {
        if let Some((number, generation)) = at {
            end.push_str(&format!(" /{name} {number} {generation} R"));
        }
    }
    if let [first, second] = trailer.id.as_slice() {
        // In octal digits, which every reader of strings knows.
        let digits = |id: &[u8]| {
            id.iter()
                .map(|byte| format!("\\{byte:03o}"))
                .collect::<String>()
        };
        end.push_str(&format!(" /ID [({}) ({})]", digits(first), digits(second)));
    }
    end.push_str(&format!(" >>\nstartxref\n{table}\n%%EOF\n"));
    out.extend_from_slice(end.as_bytes());
    Some(out)
}

/// A part of the table: objects whose numbers follow on each other.
fn section(first: u64, run: &[(usize, u64)], out: &mut Vec<u8>) {
    if run.is_empty() {
        return;
    }
    out.extend_from_slice(format!("{first} {}\n", run.len()).as_bytes());
    for (at, generation) in run {
        out.extend_from_slice(format!("{at:010} {generation:05} n \n").as_bytes());
    }
}

impl Stream {
    fn is_wrong(&self, pdf: &[u8], objects: &BTreeMap<u64, Place>) -> bool {
        match self.said {
            Said::Right => false,
            Said::Wrong => true,
            Said::Elsewhere(number) => {
                let said = objects.get(&number).and_then(|place| {
                    let at = place.at + find(&pdf[place.at..], b"obj")? + 3;
                    Some(self::number(&pdf[at..])?.0)
                });
                said.is_none_or(|length| !ends_after(pdf, self.data.0, length))
            }
        }
    }

    /// Puts the stream behind the file once more, with its length; gives the place.
    fn again(&self, pdf: &[u8], (number, generation): (u64, u64), out: &mut Vec<u8>) -> usize {
        let (begin, end) = self.data;
        out.push(b'\n');
        let at = out.len();
        out.extend_from_slice(format!("{number} {generation} obj\n").as_bytes());
        let length = (end - begin).to_string();
        match self.length {
            Some((from, until)) => {
                out.extend_from_slice(&pdf[self.dictionary..from]);
                out.extend_from_slice(format!(" {length} ").as_bytes());
                out.extend_from_slice(&pdf[until..begin]);
            }
            None => {
                out.extend_from_slice(format!("<< /Length {length} ").as_bytes());
                out.extend_from_slice(&pdf[self.dictionary + 2..begin]);
            }
        }
        out.extend_from_slice(&pdf[begin..end]);
        out.extend_from_slice(b"\nendstream\nendobj\n");
        at
    }
}

/// Whether a stream that begins here and is so long has its end where it must be.
fn ends_after(pdf: &[u8], begin: usize, length: u64) -> bool {
    let end = usize::try_from(length)
        .ok()
        .and_then(|length| begin.checked_add(length));
    let Some(rest) = end.and_then(|end| pdf.get(end..)) else {
        return false;
    };
    let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
    let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
    rest.starts_with(b"endstream")
}

/// Looks for objects, from the beginning of a file to its end. Of several with the same number the last counts, as where a
/// file was changed by what was put behind it.
struct Scan<'a> {
    pdf: &'a [u8],
    objects: BTreeMap<u64, Place>,
    trailer: Trailer,
    /// The last object that says that it is the catalog.
    catalog: Option<(u64, u64)>,
    /// Bytes of dictionaries that may still be looked at.
    work: usize,
    /// No stream ends any more: looked for once.
    no_more_ends: bool,
}

impl<'a> Scan<'a> {
    fn of(pdf: &'a [u8]) -> Option<(BTreeMap<u64, Place>, Trailer)> {
        let mut scan = Self {
            pdf,
            objects: BTreeMap::new(),
            trailer: Trailer::default(),
            catalog: None,
            work: pdf.len().saturating_mul(WORK).max(DICTIONARY),
            no_more_ends: false,
        };
        let mut at = 0;
        while let Some(found) = pdf.get(at..).and_then(next_mark) {
            let here = at + found;
            at = match pdf[here] {
                b't' => scan.trailer_at(here + b"trailer".len())?,
                _ => scan.object_at(here)?,
            };
        }
        let Self {
            objects,
            mut trailer,
            catalog,
            ..
        } = scan;
        trailer.root = trailer.root.or(catalog);
        (!objects.is_empty()).then_some((objects, trailer))
    }

    /// A dictionary that begins here, behind blanks, with what follows it; `None` where there is none.
    /// The outer `None`: too much was looked at.
    #[allow(
        clippy::option_option,
        reason = "nothing found and too much looked at are two answers"
    )]
    fn dictionary(&mut self, at: usize) -> Option<Option<(usize, usize)>> {
        let begin = self.pdf.len() - skip(&self.pdf[at..]).len();
        let text = &self.pdf[begin..self.pdf.len().min(begin + DICTIONARY)];
        if !text.starts_with(b"<<") {
            return Some(None);
        }
        let length = length_of(text);
        self.work = self.work.checked_sub(length.unwrap_or(text.len()))?;
        Some(length.map(|length| (begin, begin + length)))
    }

    /// Takes what a trailer says, and gives where to go on.
    fn trailer_at(&mut self, at: usize) -> Option<usize> {
        let Some((begin, end)) = self.dictionary(at)? else {
            return Some(at);
        };
        self.whole(begin, end);
        Some(end)
    }

    fn whole(&mut self, begin: usize, end: usize) {
        let said = &self.pdf[begin..end];
        let Some(root) = entry(said, b"Root").and_then(reference) else {
            return;
        };
        let mut id = Vec::new();
        if let Some((Token::Open, mut rest)) = entry(said, b"ID").and_then(token) {
            while let Some((Token::Text(part), after)) = token(rest)
                && id.len() < 2
            {
                id.push(part);
                rest = after;
            }
        }
        let known = &mut self.trailer;
        known.root = Some(root);
        if let Some(encrypt) = entry(said, b"Encrypt") {
            known.encrypt = reference(encrypt);
            known.sealed |= known.encrypt.is_none();
        }
        known.info = entry(said, b"Info").and_then(reference).or(known.info);
        if id.len() == 2 {
            known.id = id;
        }
    }

    /// Takes the object whose `obj` stands here, if it is one, and gives where to go on.
    fn object_at(&mut self, here: usize) -> Option<usize> {
        let behind = here + b"obj".len();
        let Some((at, number, generation)) = numbers_before(self.pdf, here) else {
            return Some(behind);
        };
        let named = (number, generation);
        let mut place = Place {
            at,
            generation,
            stream: None,
        };
        let mut next = behind;
        if let Some((begin, end)) = self.dictionary(behind)? {
            next = end;
            let said = &self.pdf[begin..end];
            match entry(said, b"Type").and_then(token) {
                Some((Token::Name(b"Catalog"), _)) => self.catalog = Some(named),
                Some((Token::Name(b"XRef"), _)) => self.whole(begin, end),
                _ => {}
            }
            if let Some(stream) = self.stream(begin, end) {
                next = stream.data.1;
                place.stream = Some(stream);
            }
        }
        self.objects.insert(number, place);
        Some(next)
    }

    fn stream(&mut self, begin: usize, end: usize) -> Option<Stream> {
        let data = skip(&self.pdf[end..]).strip_prefix(b"stream")?;
        let blanks = data.iter().take_while(|byte| **byte == b' ').count();
        let data = &data[blanks..];
        let data = data.strip_prefix(b"\r").unwrap_or(data);
        let data = data.strip_prefix(b"\n").unwrap_or(data);
        let from = self.pdf.len() - data.len();
        let said = &self.pdf[begin..end];
        let value = entry(said, b"Length");
        let place = value.and_then(|value| {
            let until = match reference(value) {
                // What follows `5 0 R`.
                Some(_) => &value[find(value, b"R")? + 1..],
                // Also where it is no number.
                None => token(value)?.1,
            };
            Some((end - value.len(), end - until.len()))
        });
        let told = match value.and_then(reference) {
            Some((number, _)) => Said::Elsewhere(number),
            None => match value.and_then(number) {
                Some((length, _)) if ends_after(self.pdf, from, length) => {
                    // Within bounds, as it ends there.
                    let until = from + usize::try_from(length).ok()?;
                    return Some(Stream {
                        dictionary: begin,
                        length: place,
                        said: Said::Right,
                        data: (from, until),
                    });
                }
                _ => Said::Wrong,
            },
        };
        let found = match self.no_more_ends {
            true => None,
            false => find(data, b"endstream"),
        };
        self.no_more_ends = found.is_none();
        let until = from + found?;
        let body = &self.pdf[from..until];
        let body = body.strip_suffix(b"\n").unwrap_or(body);
        let body = body.strip_suffix(b"\r").unwrap_or(body);
        Some(Stream {
            dictionary: begin,
            length: place,
            said: told,
            data: (from, from + body.len()),
        })
    }
}

/// The next `obj` that begins an object, or `trailer`.
fn next_mark(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let found = text[at..]
            .iter()
            .position(|byte| matches!(byte, b'o' | b't'))?;
        at += found;
        let begins = match text[at] {
            b't' => text[at..].starts_with(b"trailer"),
            _ => text[at..].starts_with(b"obj") && (at == 0 || text[at - 1] != b'd'),
        };
        if begins {
            return Some(at);
        }
        at += 1;
    }
}

/// `12 0 ` before a place: where it begins, and both numbers.
fn numbers_before(pdf: &[u8], here: usize) -> Option<(usize, u64, u64)> {
    /// Digits of a number, and blanks around it, that are looked at.
    const LONGEST: usize = 10;
    let back = |mut at: usize, is: fn(&u8) -> bool| {
        let least = at.saturating_sub(LONGEST);
        while at > least && is(&pdf[at - 1]) {
            at -= 1;
        }
        at
    };
    let digit = |byte: &u8| byte.is_ascii_digit();
    let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
    let value = |from: usize, until: usize| -> Option<u64> {
        std::str::from_utf8(&pdf[from..until]).ok()?.parse().ok()
    };
    let second_ends = back(here, blank);
    let second = back(second_ends, digit);
    let first_ends = back(second, blank);
    let first = back(first_ends, digit);
    if first_ends == second {
        return None;
    }
    let number = value(first, first_ends)?;
    let generation = value(second, second_ends)?;
    let known = (1..=HIGHEST).contains(&number) && generation <= u64::from(u16::MAX);
    known.then_some((first, number, generation))
}

/// How long the dictionary is that a text begins with.
fn length_of(text: &[u8]) -> Option<usize> {
    let (mut rest, mut depth) = (text, 0_usize);
    loop {
        let (next, after) = token(rest)?;
        match next {
            Token::Open => depth += 1,
            Token::Close if depth <= 1 => return Some(text.len() - after.len()),
            Token::Close => depth -= 1,
            _ => {}
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use lopdf::Document;

    use super::*;

    const WORDS: &str = "the lamp is lit";

    fn whole() -> Vec<u8> {
        let mut pdf = tg_testkit::pdf::Pdf::courier();
        pdf.page(&tg_testkit::pdf::line(60.0, 700.0, WORDS));
        pdf.finish("")
    }

    /// The text of the file as it comes out of the repair.
    fn read(pdf: &[u8]) -> Option<String> {
        let document = Document::load_mem(&repaired(pdf)?).ok()?;
        let page = *document.get_pages().values().next()?;
        Some(String::from_utf8_lossy(&document.get_page_content(page).ok()?).into_owned())
    }

    fn replaced(pdf: &[u8], from: &str, to: &str) -> Vec<u8> {
        let at = find(pdf, from.as_bytes()).expect("there");
        [&pdf[..at], to.as_bytes(), &pdf[at + from.len()..]].concat()
    }

    #[test]
    fn objects_are_found_whatever_the_table_says() {
        let pdf = whole();
        let table = find(&pdf, b"xref\n").expect("a table");
        let shifted = [b"junk before\n".as_slice(), &pdf].concat();
        let without = [
            &pdf[..table],
            b"trailer << /Root 1 0 R >>\n%%EOF".as_slice(),
        ]
        .concat();
        let bare = [&pdf[..table], b"%%EOF".as_slice()].concat();
        let late = [pdf.as_slice(), &[0; 5000]].concat();
        for (way, file) in [
            (
                "a wrong place",
                replaced(&pdf, "startxref\n", "startxref\n9"),
            ),
            (
                "wrong entries",
                replaced(&pdf, "\n0000000009 00000 n", "\n0000000019 00000 n"),
            ),
            ("something before it", shifted),
            ("no table", without),
            ("no trailer", bare),
            ("much behind the end", late),
            ("two ends", [pdf.as_slice(), b"\n%%EOF\n"].concat()),
        ] {
            assert!(
                read(&file).is_some_and(|text| text.contains(WORDS)),
                "{way}"
            );
        }
    }

    #[test]
    fn streams_get_the_length_that_they_have() {
        let pdf = whole();
        let content = tg_testkit::pdf::line(60.0, 700.0, WORDS);
        let length = format!("/Length {} ", content.len());
        for wrong in [
            "/Length 3 ",
            "/Length 999999999 ",
            "/Length -1 ",
            "/Length 99 0 R ",
            "/L 1 ",
            "/Length 1 0 R ",
        ] {
            let file = replaced(&pdf, &length, wrong);
            let text = read(&file).expect(wrong);
            assert_eq!(text.trim_end(), content.trim_end(), "{wrong}");
        }
        assert!(read(&pdf).is_some());
    }

    #[test]
    fn the_last_of_an_object_counts_and_packed_ones_are_there() {
        let pdf = whole();
        let changed = String::from_utf8(pdf.clone())
            .expect("text")
            .replace(WORDS, "the lamp is out");
        let at = find(&pdf, b"4 0 obj").expect("the page's content");
        let end = at + find(&pdf[at..], b"endobj").expect("its end") + 6;
        let file = [&pdf, &changed.as_bytes()[at..end], b"\n%%EOF"].concat();
        assert!(read(&file).is_some_and(|text| text.contains("is out")));
        let packed = [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /Contents 5 0 R >>",
        ];
        let (mut heads, mut at) = (String::new(), 0);
        for (number, body) in (1..).zip(packed) {
            heads.push_str(&format!("{number} {at} "));
            at += body.len() + 1;
        }
        let bodies = packed.join(" ");
        let file = format!(
            "%PDF-1.5\n9 0 obj << /Type /ObjStm /N 3 /First {} /Length {} >> stream\n{heads}{bodies}\nendstream endobj\n\
             5 0 obj << /Length 2 >> stream\n()\nendstream endobj\n\
             6 0 obj << /Type /XRef /Root 1 0 R /Length 0 >> stream\n\nendstream endobj\nstartxref\n3\n%%EOF",
            heads.len(),
            heads.len() + bodies.len()
        );
        assert_eq!(read(file.as_bytes()).as_deref().map(str::trim), Some("()"));
    }

    #[test]
    fn what_was_cut_off_is_not_made_up() {
        let pdf = whole();
        for pieces in 0..20 {
            assert_eq!(repaired(&pdf[..pdf.len() * pieces / 20]), None, "{pieces}");
        }
        // A second version of the file, without its end.
        let grown = [pdf.as_slice(), b"4 0 obj << /Length 1 >> stream\nq"].concat();
        assert_eq!(repaired(&grown), None);
        assert_eq!(
            repaired(b"%PDF-1.4\n1 0 obj << /Type /Page >> endobj %%EOF"),
            None
        );
        let sealed = replaced(&pdf, "/Root 1 0 R", "/Root 1 0 R /Encrypt << /V 1 >>");
        assert_eq!(repaired(&sealed), None);
    }

    #[test]
    fn looking_has_an_end() {
        for part in [
            "1 0 obj << (",
            "1 0 obj << /Length 9 >> stream\n",
            "1 0 obj <<",
            "trailer << [",
            "obj ",
        ] {
            let file = format!("%PDF-1.4\n{}\n%%EOF", part.repeat(100_000));
            let _ = repaired(file.as_bytes());
        }
    }
}
