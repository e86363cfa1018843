//! Bytes that clients send as text: base64 with or without line ends and padding, of either alphabet, also as a `data:` address.

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Encoders disagree about padding.
const PADDING: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const PLAIN: GeneralPurpose = GeneralPurpose::new(&STANDARD, PADDING);
const OF_ADDRESSES: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, PADDING);
/// Shortest line of a text that is wrapped: PEM has 64 characters, MIME 76. Text of short lines is text.
const LINE: usize = 60;

/// The bytes; `None`: the text is no base64.
pub(super) fn bytes(text: &str) -> Option<Vec<u8>> {
    let text = within_address(text);
    match text.contains(|c: char| c.is_ascii_whitespace()) {
        true => decode(&text.split_ascii_whitespace().collect::<String>()),
        false => decode(text),
    }
}

/// The bytes of a text that may be anything: only of one that cannot well be text. Lines that were wrapped are of one length, the
/// last one excepted.
pub(super) fn bytes_of_text(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches(['\r', '\n']);
    let mut lines = text.lines();
    let first = lines.next()?;
    let rest: Vec<&str> = lines.collect();
    if rest.is_empty() {
        return base64::engine::general_purpose::STANDARD.decode(first).ok();
    }
    let (last, between) = rest.split_last()?;
    let is_wrapped = first.len() >= LINE
        && between.iter().all(|line| line.len() == first.len())
        && (1..=first.len()).contains(&last.len());
    if !is_wrapped || text.contains(' ') {
        return None;
    }
    base64::engine::general_purpose::STANDARD
        .decode(first.to_owned() + &rest.concat())
        .ok()
}

fn decode(text: &str) -> Option<Vec<u8>> {
    match text.contains(['-', '_']) {
        true => OF_ADDRESSES.decode(text).ok(),
        false => PLAIN.decode(text).ok(),
    }
}

/// What stands in an address such as `data:image/png;base64,…`.
fn within_address(text: &str) -> &str {
    let text = text.trim_start();
    let head = text
        .get(..5)
        .filter(|head| head.eq_ignore_ascii_case("data:"));
    match (head, text.split_once(',')) {
        (Some(_), Some((kind, data))) if kind.ends_with(";base64") => data,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_as_encoders_write_it() {
        for text in [
            "aGVsbG8=",
            "aGVsbG8",
            "aGVs\nbG8=\n",
            "aGVs\r\nbG8=\r\n",
            " aGVs bG8= ",
            "data:text/plain;base64,aGVsbG8=",
            "data:text/plain;charset=utf-8;base64,aGVs\nbG8=",
        ] {
            assert_eq!(bytes(text).as_deref(), Some(b"hello".as_slice()), "{text}");
        }
        assert_eq!(bytes("_-8="), bytes("/+8="));
        for text in ["%%", "aGV*", "data:text/plain,aGVsbG8=", "a"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }

    #[test]
    fn text_of_lines_is_no_base64() {
        let long = "The clocks of the harbour are wound on Mondays. ".repeat(6);
        let encoded = PLAIN.encode(&long);
        for width in [64, 76] {
            for end in ["\n", "\r\n"] {
                let lines: Vec<&str> = (0..encoded.len())
                    .step_by(width)
                    .map(|at| &encoded[at..encoded.len().min(at + width)])
                    .collect();
                let wrapped = lines.join(end);
                let read = bytes_of_text(&(wrapped.clone() + end));
                assert_eq!(read.as_deref(), Some(long.as_bytes()), "{width}");
                assert_eq!(bytes_of_text(&wrapped).as_deref(), Some(long.as_bytes()));
            }
        }
        assert_eq!(
            bytes_of_text("aGVsbG8=\n").as_deref(),
            Some(b"hello".as_slice())
        );
        for text in [
            "",
            "word\nword\n",
            "hello there",
            "four\nfour\nfour",
            "aGVsbG8=\n\naGVsbG8=",
        ] {
            assert_eq!(bytes_of_text(text), None, "{text}");
        }
    }
}
