//! What stands above the line: read flat, ten to the sixth is one hundred and six.

/// Whether a raised text is an exponent: digits, with a sign perhaps. Other raised texts, such as the `st` of `1st`, go on
/// with their word.
pub(super) fn is_exponent(text: &str) -> bool {
    let text = text.trim();
    let is_sign = |one: char| matches!(one, '+' | '-' | '\u{2212}' | '\u{2013}' | '\u{2011}');
    text.chars().any(|one| one.is_ascii_digit())
        && text.chars().all(|one| one.is_ascii_digit() || is_sign(one))
}

/// Whether an exponent may stand behind this.
pub(super) fn is_base(before: &str) -> bool {
    let last = before.chars().next_back();
    last.is_some_and(|one| one.is_alphanumeric() || matches!(one, ')' | ']'))
}
