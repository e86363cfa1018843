//! Which characters the bytes of a text are: as the text itself declares, else as its bytes suggest.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// How far into a page its charset may be declared, as browsers have it.
pub const DECLARED_WITHIN: usize = 1024;
/// How far into a page that is not UTF-8 it may be declared: browsers begin anew where they find it later.
const DECLARED_LATE: usize = 16 << 10;
/// Bytes at the beginning of a text by which UTF-16 is known that has no mark.
pub(crate) const PAIRS: usize = 32;
/// Of so many characters of UTF-8 one byte may be wrong: more than that, and it is UTF-8 with a fault, not another
/// charset.
const FAULTS: usize = 8;
/// One in so many characters of a text may be a control character.
const CONTROLS: usize = 20;

/// The charset that an XML declaration names: `<?xml version="1.0" encoding="ISO-8859-1"?>`.
pub fn of_xml(head: &[u8]) -> Option<&'static Encoding> {
    let head = &head[..head.len().min(DECLARED_WITHIN)];
    let rest = head.strip_prefix(b"<?xml")?;
    let end = rest.windows(2).position(|two| two == b"?>")?;
    named(value_of(&rest[..end], b"encoding")?)
}

/// UTF-16 without its mark, known by its ASCII: three of four characters at least, and all of them the same way round.
pub(crate) fn of_pairs(head: &[u8]) -> Option<&'static Encoding> {
    let written = |byte: u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e);
    let (mut little, mut big) = (0, 0);
    for pair in head.get(..PAIRS)?.chunks_exact(2) {
        match pair {
            [low, 0] if written(*low) => little += 1,
            [0, low] if written(*low) => big += 1,
            _ => {}
        }
    }
    let enough = PAIRS / 2 * 3 / 4;
    match (little, big) {
        (_, 0) if little >= enough => Some(UTF_16LE),
        (0, _) if big >= enough => Some(UTF_16BE),
        _ => None,
    }
}

/// The charset that a web page declares in a `meta` element, or as XML.
pub fn of_html(page: &[u8]) -> Option<&'static Encoding> {
    let early = declared(page, DECLARED_WITHIN);
    early.or_else(|| match std::str::from_utf8(page) {
        Ok(_) => None,
        Err(_) => declared(page, DECLARED_LATE),
    })
}

fn declared(page: &[u8], within: usize) -> Option<&'static Encoding> {
    let head = &page[..page.len().min(within)];
    let start = head.iter().position(|byte| !byte.is_ascii_whitespace())?;
    if let Some(found) = of_xml(&head[start..]) {
        return Some(found);
    }
    let lower = head.to_ascii_lowercase();
    let mut rest = lower.as_slice();
    while let Some(at) = rest.iter().position(|byte| *byte == b'<') {
        rest = &rest[at..];
        if rest.starts_with(b"<!--") {
            let end = rest.windows(3).position(|three| three == b"-->")?;
            rest = &rest[end + 3..];
            continue;
        }
        let end = rest.iter().position(|byte| *byte == b'>')?;
        let (tag, after) = rest.split_at(end);
        rest = after;
        if tag.starts_with(b"<meta")
            && let Some(found) = value_of(tag, b"charset").and_then(named)
        {
            return Some(found);
        }
    }
    None
}

/// The value behind `name=`, also where that stands within a value, as in `content="text/html; charset=x"`.
fn value_of<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut rest = text;
    loop {
        let at = rest.windows(name.len()).position(|here| here == name)?;
        rest = rest[at + name.len()..].trim_ascii_start();
        let Some(value) = rest.strip_prefix(b"=") else {
            continue;
        };
        let value = value.trim_ascii_start();
        let value = match value {
            [b'"' | b'\'', within @ ..] => within.trim_ascii_start(),
            bare => bare,
        };
        let ends = |byte: &u8| matches!(byte, b'"' | b'\'' | b';' | b'>' | b'/' | b'?');
        let end = value
            .iter()
            .position(|byte| ends(byte) || byte.is_ascii_whitespace());
        return Some(&value[..end.unwrap_or(value.len())]);
    }
}

/// A charset by its name. One that was read byte by byte until here has no wide characters, whatever it says.
fn named(label: &[u8]) -> Option<&'static Encoding> {
    let found = Encoding::for_label(label).filter(|found| *found != REPLACEMENT)?;
    Some(match found == UTF_16LE || found == UTF_16BE {
        true => UTF_8,
        false => found,
    })
}

/// The charset of bytes that are not marked. `last`: there are no more. `None`: UTF-8, whole or with a fault that the
/// decoder tells.
pub(crate) fn guess(bytes: &[u8], last: bool) -> Option<&'static Encoding> {
    let (characters, faults) = as_utf8(bytes, last);
    if faults == 0 || characters > faults * FAULTS {
        return None;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, last);
    let guessed = detector.guess(None, Utf8Detection::Deny);
    // From a few quotes, dashes and euro signs nothing can be told; they are most common in this one.
    let told = !guessed.is_single_byte() || is_western(guessed);
    Some(match told || has_words_beyond_ascii(bytes) {
        true => guessed,
        false => WINDOWS_1252,
    })
}

/// Whether a charset is one of those in which most letters of a text are ASCII.
fn is_western(charset: &'static Encoding) -> bool {
    let other = [
        "windows-1251",
        "windows-1253",
        "windows-1255",
        "windows-1256",
    ];
    let name = charset.name();
    let latin = [
        "ISO-8859-2",
        "ISO-8859-3",
        "ISO-8859-4",
        "ISO-8859-10",
        "ISO-8859-13",
        "ISO-8859-14",
        "ISO-8859-15",
    ];
    name.starts_with("windows-125") && !other.contains(&name) || latin.contains(&name)
}

/// Whether a text has words that are written without ASCII: three bytes beyond it in a row that are no signs of Windows-1252.
fn has_words_beyond_ascii(bytes: &[u8]) -> bool {
    let sign = |byte: u8| {
        matches!(
            byte,
            0x80 | 0x82 | 0x84 | 0x85 | 0x8b | 0x91..=0x97 | 0x99 | 0x9b | 0xa0 | 0xab | 0xbb
        )
    };
    bytes
        .windows(3)
        .any(|three| three.iter().all(|byte| *byte >= 0x80 && !sign(*byte)))
}

/// How many characters beyond ASCII the bytes hold as UTF-8, and how many faults.
fn as_utf8(bytes: &[u8], last: bool) -> (usize, usize) {
    let (mut characters, mut faults) = (0, 0);
    let mut chunks = bytes.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        characters += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        let bad = chunk.invalid();
        // The beginning of a character at the end may go on; where it is more than one byte, it was cut off.
        let begun = (!last || bad.len() > 1)
            && chunks.peek().is_none()
            && std::str::from_utf8(bad).is_err_and(|fault| fault.error_len().is_none());
        faults += usize::from(!bad.is_empty() && !begun);
    }
    (characters, faults)
}

/// Whether what was decoded with a guess looks like nothing that people write.
pub(crate) fn is_odd(text: &str) -> bool {
    let odd = |c: &char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{c}' | '\u{1b}');
    text.chars().filter(odd).count() * CONTROLS > text.chars().count()
}

#[cfg(test)]
mod tests {
    use encoding_rs::{IBM866, ISO_8859_15, KOI8_U, SHIFT_JIS, WINDOWS_1251, WINDOWS_1253};

    use super::*;

    #[test]
    fn a_few_quotes_and_euro_signs_are_western() {
        for text in [
            "preis;zeichen\n12;„€“ – und mehr\n",
            "name;price\nlamp;12 €\n",
            "it’s “here”",
            "Größe 3…",
        ] {
            let (bytes, _, lossy) = WINDOWS_1252.encode(text);
            assert!(!lossy, "{text}");
            assert_eq!(guess(&bytes, true), Some(WINDOWS_1252), "{text}");
        }
        let words = "Старый мост был построен из камня над рекой.";
        for charset in [WINDOWS_1251, KOI8_U, IBM866] {
            assert_eq!(guess(&charset.encode(words).0, true), Some(charset));
        }
        let greek = WINDOWS_1253.encode("Η παλιά γέφυρα του ποταμού.").0;
        assert_eq!(guess(&greek, true), Some(WINDOWS_1253));
    }

    #[test]
    fn pages_and_data_declare_their_charset() {
        let page = |text: &str| of_html(text.as_bytes());
        assert_eq!(page("<html><meta charset=latin1>"), Some(WINDOWS_1252));
        assert_eq!(page("<META CharSet = 'Shift_JIS' />"), Some(SHIFT_JIS));
        let old = "<meta http-equiv=Content-Type content=\"text/html; charset=iso-8859-15\">";
        assert_eq!(page(old), Some(ISO_8859_15));
        assert_eq!(
            page("<!-- <meta charset=x> --><p>a<meta charset=\"windows-1251\">"),
            Some(WINDOWS_1251)
        );
        assert_eq!(page("<meta charset=utf-16>"), Some(UTF_8));
        for none in [
            "",
            "<meta name=charset>",
            "<meta charset=klingon>",
            "<p charset=latin1>",
        ] {
            assert_eq!(page(none), None, "{none}");
        }
        let late = |rest: &[u8]| {
            let before = " ".repeat(DECLARED_WITHIN);
            let text = format!("<html>{before}<meta charset=windows-1251>");
            of_html(&[text.as_bytes(), rest].concat())
        };
        assert_eq!(late("wörter".as_bytes()), None, "it is UTF-8");
        assert_eq!(late(b"\xf1\xeb\xee\xe2\xe0"), Some(WINDOWS_1251));
        let data = b"<?xml version='1.0' encoding='windows-1251'?><a/>";
        assert_eq!(of_xml(data), Some(WINDOWS_1251));
        assert_eq!(of_xml(b"<?xml version='1.0'?><a encoding='x'/>"), None);
        assert_eq!(of_xml(b"<?xml encoding='windows-1251'"), None);
    }

    #[test]
    fn utf8_with_a_fault_is_not_another_charset() {
        let mut text = "Grüße aus Köln, schöne Straße, für Übung, Äpfel und Öl".repeat(2);
        assert_eq!(guess(text.as_bytes(), true), None);
        text.truncate(text.len() - 1);
        let mut bytes = text.into_bytes();
        bytes.push(0xe9);
        assert_eq!(guess(&bytes, true), None);
        assert_eq!(guess(&bytes, false), None);
        assert_eq!(guess(b"caf\xe9 au lait", true), Some(WINDOWS_1252));
    }
}
