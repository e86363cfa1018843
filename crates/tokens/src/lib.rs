//! How many tokens a text has, by the table `cl100k_base`. Models count with tables of their own; for the texts that people
//! write these differ by less than a tenth. Pure; the table is read once, when first asked for.

use std::sync::LazyLock;

use tiktoken_rs::CoreBPE;

static TABLE: LazyLock<Option<CoreBPE>> = LazyLock::new(|| tiktoken_rs::cl100k_base().ok());

/// Text counted at once, in bytes: a long word takes time with the square of its length.
const PIECE: usize = 2 << 10;
/// Bytes of a token, about, where there is no table.
const BYTES: usize = 4;

/// The table.
pub fn table() -> Option<&'static CoreBPE> {
    TABLE.as_ref()
}

/// Tokens of a text.
pub fn count(text: &str) -> u64 {
    let Some(table) = table() else {
        return text.len().div_ceil(BYTES) as u64;
    };
    let (mut rest, mut tokens) = (text, 0);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(end_of_piece(rest));
        tokens += table.encode_ordinary(piece).len() as u64;
        rest = after;
    }
    tokens
}

/// The text that these tokens are. What is cut within a character is replaced. `None`: one of them is not in the table, or there is
/// none.
pub fn text(tokens: &[u32]) -> Option<String> {
    let bytes = table()?.decode_bytes(tokens).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Where a piece ends: before a blank if there is one near its end, else between two characters.
fn end_of_piece(text: &str) -> usize {
    if text.len() <= PIECE {
        return text.len();
    }
    let mut end = PIECE;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    match text[..end].rfind(' ') {
        Some(blank) if blank > PIECE / 2 => blank,
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_tokens_and_long_texts_are_counted_in_pieces() {
        assert_eq!(count(""), 0);
        assert_eq!(count("hello world"), 2);
        assert_eq!(count(&" word".repeat(10_000)), 10_000);
    }

    #[test]
    fn tokens_are_the_text_that_they_were_made_of() {
        let said = "Größe: 12 m² 🦀";
        let tokens = table().unwrap().encode_ordinary(said);
        assert_eq!(text(&tokens).as_deref(), Some(said));
        assert_eq!(text(&[]).as_deref(), Some(""));
        assert_eq!(text(&[u32::MAX]), None);
    }

    #[test]
    fn a_word_without_end_takes_no_time_without_end() {
        let endless = "é".repeat(200_000);
        assert!(count(&endless) > 0);
    }
}
