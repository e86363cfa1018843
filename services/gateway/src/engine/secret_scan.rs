//! Runs of bytes, quotes and words in a text: what the finders of secrets look by.

use std::ops::Range;

/// Most blanks between a name, its mark and the value.
pub(super) const BLANKS: usize = 8;
/// What stands where a value could, and is none.
const NO_VALUE: [&str; 22] = [
    "null", "none", "nil", "true", "false", "string", "number", "integer", "boolean", "required",
    "optional", "the", "a", "an", "is", "it", "see", "must", "may", "not", "your", "of",
];

/// Where a run of bytes ends.
pub(super) fn run(bytes: &[u8], from: usize, most: usize, of: impl Fn(u8) -> bool) -> usize {
    let rest = bytes[from..].iter().take(most);
    from + rest.take_while(|byte| of(**byte)).count()
}

/// Where a run of bytes begins.
pub(super) fn run_back(bytes: &[u8], to: usize, most: usize, of: impl Fn(u8) -> bool) -> usize {
    let rest = bytes[..to].iter().rev().take(most);
    to - rest.take_while(|byte| of(**byte)).count()
}

pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

pub(super) fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

/// A value in quotes, which may be those of a text in a text.
pub(super) fn quoted(text: &str, from: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let slashes = run(bytes, from, 8, |byte| byte == b'\\');
    let quote = *bytes.get(slashes).filter(|byte| is_quote(**byte))?;
    let (depth, start) = (slashes - from, slashes + 1);
    let mut before = 0;
    for (at, byte) in bytes[start..].iter().enumerate() {
        match byte {
            b'\\' => before += 1,
            _ if *byte == quote && before <= depth => return Some(start..start + at - before),
            _ => before = 0,
        }
    }
    Some(start..bytes.len())
}

/// Whether a word stands where a value could, and is none.
pub(super) fn is_no_value(word: &str) -> bool {
    NO_VALUE.iter().any(|none| word.eq_ignore_ascii_case(none))
}

/// Whether a word is a number, as people write them.
pub(super) fn is_numeric(word: &str) -> bool {
    word.bytes()
        .all(|byte| byte.is_ascii_digit() || b"._,%kKmM+-".contains(&byte))
}
