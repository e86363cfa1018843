//! How much text a prompt takes. What does not fit is left out from the end: the best comes first.

/// Cuts a text at a boundary between characters; says so with an ellipsis.
pub fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// How many of the texts, from the first, fit into so many bytes. The first always does.
pub fn fitting<T: AsRef<str>>(texts: &[T], bytes: usize) -> usize {
    let mut left = bytes;
    for (at, text) in texts.iter().enumerate() {
        let size = text.as_ref().len();
        if size > left && at > 0 {
            return at;
        }
        left = left.saturating_sub(size);
    }
    texts.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(shorten("äöü", 3), "äöü");
        assert_eq!(shorten("äöüß", 3), "äö…");
        assert_eq!(fitting(&["aaaa", "bb", "cc"], 5), 1);
        assert_eq!(fitting(&["aaaaaaaa"], 5), 1);
        assert_eq!(fitting(&["a", "b", "c"], 5), 3);
    }
}
