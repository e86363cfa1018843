//! What can be told of a PDF by its end, without reading it: that its end is missing and nothing makes up for that, or that it opens with a password
//! only. Says so where it is certain, as the reader of documents finds the same at the same place; whatever is less
//! certain is left to that one. Never unpacks anything.

use lopdf::{Dictionary, Document, Object, StringFormat};

use crate::kind::Refusal;
use crate::packed::find;
use crate::repair;
use crate::syntax::{self, Token, entry, number, skip, token};

/// Bytes at the end in which the mark of the end stands.
const END: usize = 512;
/// Bytes before that mark in which it says where the table of objects is.
const START: usize = 25;
/// Bytes of a dictionary that are looked at.
const DICTIONARY: usize = 16 << 10;

/// Why a PDF of which all is at hand can certainly not be read; `None` where nothing is certain.
pub fn refusal(pdf: &[u8]) -> Option<Refusal> {
    let from = find(pdf, b"%PDF-").unwrap_or(0);
    let pdf = &pdf[from..];
    let locked = |pdf: &[u8]| {
        let opens = opens(pdf, table(pdf)?)?;
        (!opens).then_some(Refusal::Encrypted)
    };
    if table(pdf).is_some() {
        return locked(pdf);
    }
    // The reader of documents makes it whole in the same way.
    match repair::repaired(pdf) {
        Some(whole) => locked(&whole),
        None => Some(Refusal::Damaged),
    }
}

/// The table of objects, and what follows it.
fn table(pdf: &[u8]) -> Option<&[u8]> {
    let last = pdf.len().saturating_sub(END);
    let mark = last + rfind(&pdf[last..], b"%%EOF")?;
    let before = mark.checked_sub(START)?;
    let at = before + rfind(&pdf[before..mark], b"startxref")?;
    let (start, _) = number(&pdf[at + b"startxref".len()..])?;
    let table = pdf.get(usize::try_from(start).ok()?..)?;
    let first = skip(table);
    // A table, or an object that holds it.
    let is_table = first.starts_with(b"xref") || first.first().is_some_and(u8::is_ascii_digit);
    is_table.then_some(table)
}

fn rfind(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).rposition(|here| here == what)
}

/// Whether an encrypted PDF opens without a password; `None` where it is not encrypted, or not as expected.
fn opens(pdf: &[u8], table: &[u8]) -> Option<bool> {
    let trailer = match skip(table).starts_with(b"xref") {
        true => &table[find(table, b"trailer")? + 7..],
        false => &table[find(table, b"obj")? + 3..],
    };
    let trailer = clipped(trailer);
    let encrypt = entry(trailer, b"Encrypt")?;
    if matches!(token(encrypt), Some((Token::Open, _))) {
        // Within the trailer itself, where the reader of documents does not take it.
        return Some(false);
    }
    let encrypt = syntax::reference(encrypt)?;
    let said = clipped(syntax::object(pdf, encrypt)?);
    let mut document = Document::new();
    let mut encryption = Dictionary::new();
    for (key, needed) in [("V", true), ("R", true), ("P", true), ("Length", false)] {
        match integer(said, key.as_bytes()) {
            Some(number) => encryption.set(key, Object::Integer(number)),
            None if needed => return None,
            None => {}
        }
    }
    for key in ["O", "U", "OE", "UE", "Perms"] {
        match text(said, key.as_bytes()) {
            Some(text) => encryption.set(key, string(text)),
            None if key.len() == 1 => return None,
            None => {}
        }
    }
    let open = entry(said, b"EncryptMetadata").and_then(token);
    if matches!(open, Some((Token::Word(b"false"), _))) {
        encryption.set("EncryptMetadata", Object::Boolean(false));
    }
    // The newest way goes without a name of the file.
    let named = entry(trailer, b"ID").and_then(|id| match token(id)? {
        (Token::Open, first) => text_at(first),
        _ => None,
    });
    match named {
        Some(name) => document.trailer.set("ID", vec![string(name)]),
        None if integer(said, b"R")? < 5 => return None,
        None => {}
    }
    let at = document.add_object(encryption);
    document.trailer.set("Encrypt", Object::Reference(at));
    Some(document.authenticate_password("").is_ok())
}

fn clipped(text: &[u8]) -> &[u8] {
    &text[..text.len().min(DICTIONARY)]
}

fn integer(dictionary: &[u8], key: &[u8]) -> Option<i64> {
    match token(entry(dictionary, key)?)? {
        (Token::Word(word), _) => std::str::from_utf8(word).ok()?.parse().ok(),
        _ => None,
    }
}

fn text(dictionary: &[u8], key: &[u8]) -> Option<Vec<u8>> {
    text_at(entry(dictionary, key)?)
}

fn text_at(place: &[u8]) -> Option<Vec<u8>> {
    match token(place)? {
        (Token::Text(text), _) => Some(text),
        _ => None,
    }
}

fn string(text: Vec<u8>) -> Object {
    Object::String(text, StringFormat::Hexadecimal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(trailer: &str) -> Vec<u8> {
        let mut pdf = tg_testkit::pdf::Pdf::courier();
        pdf.page(&tg_testkit::pdf::line(60.0, 700.0, "words"));
        pdf.finish(trailer)
    }

    #[test]
    fn what_has_no_end_is_damaged() {
        let pdf = whole("");
        assert_eq!(refusal(&pdf), None);
        for pieces in 1..20 {
            let cut = &pdf[..pdf.len() * pieces / 20];
            assert_eq!(refusal(cut), Some(Refusal::Damaged), "{pieces}");
        }
        let late = [pdf.as_slice(), b"\n".repeat(400).as_slice()].concat();
        assert_eq!(refusal(&late), None);
        let shifted = [b"junk\n".as_slice(), &pdf].concat();
        assert_eq!(refusal(&shifted), None);
        // With its objects, what it says of their table does not matter.
        let said = find(&pdf, b"startxref").expect("there");
        for odd in ["7", "99999999", "x"] {
            let odd = format!("startxref\n{odd}\n%%EOF\n");
            let file = [&pdf[..said], odd.as_bytes()].concat();
            assert_eq!(refusal(&file), None, "{odd}");
        }
        for odd in [
            "startxref\n99999999\n%%EOF",
            "startxref\nx\n%%EOF",
            "startxref\n3\n%%EOF",
            "%%EOF",
        ] {
            let odd = format!("%PDF-1.4\n{}{odd}", " ".repeat(40));
            assert_eq!(refusal(odd.as_bytes()), Some(Refusal::Damaged), "{odd}");
        }
    }

    #[test]
    fn what_is_not_as_expected_is_left_to_the_reader() {
        let pdf = whole("/Encrypt 90 0 R /ID [<00> <00>]");
        assert_eq!(refusal(&pdf), None);
        let pdf = whole("/Info << /Encrypt << /V 1 >> >>");
        assert_eq!(refusal(&pdf), None);
        let pdf = whole("/Encrypt 3 0 R /ID [<00> <00>]");
        assert_eq!(refusal(&pdf), None);
    }
}
