//! How many texts go into one question.

/// Texts that are asked for at once.
pub(crate) const TEXTS: usize = 64;
/// Bytes of texts that are asked for at once; one text may be longer.
pub(crate) const BYTES: usize = 1 << 20;

/// How many of the texts fit one question: at least one.
pub(crate) fn portion(texts: &[&str]) -> usize {
    let mut bytes = 0;
    let fitting = texts.iter().take(TEXTS).take_while(|text| {
        bytes += text.len();
        bytes <= BYTES
    });
    fitting.count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_full_by_number_or_by_size_and_never_empty() {
        let long = "x".repeat(BYTES / 2 + 1);
        assert_eq!(portion(&["a"; 100]), TEXTS);
        assert_eq!(portion(&[long.as_str(), long.as_str()]), 1);
        assert_eq!(portion(&["x".repeat(2 * BYTES).as_str(), "a"]), 1);
    }
}
