//! How many tokens a text has, by the table `cl100k_base`. Models count with tables of their own; for the texts that people
//! write these differ by less than a tenth. Pure; the table is read once, when first asked for.

use std::io::Read as _;
use std::sync::LazyLock;

use flate2::read::ZlibDecoder;
use tiktoken_rs::{CoreBPE, ENDOFPROMPT, ENDOFTEXT, FIM_MIDDLE, FIM_PREFIX, FIM_SUFFIX};

static TABLE: LazyLock<Option<CoreBPE>> = LazyLock::new(unpacked);

/// The tokens as the build packed them: how many, the length of each, and their bytes. The library has them as text, four times as large.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/table"));
/// Tokens with a meaning of their own.
const SPECIAL: [(&str, u32); 5] = [
    (ENDOFTEXT, 100_257),
    (FIM_PREFIX, 100_258),
    (FIM_MIDDLE, 100_259),
    (FIM_SUFFIX, 100_260),
    (ENDOFPROMPT, 100_276),
];
/// What a text is cut by first: no token goes beyond one such piece.
const PATTERN: &str = concat!(
    r"'(?i:[sdmt]|ll|ve|re)",
    r"|[^\r\n\p{L}\p{N}]?+\p{L}++",
    r"|\p{N}{1,3}+",
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+",
    r"|\s++$",
    r"|\s*[\r\n]",
    r"|\s+(?!\S)",
    r"|\s",
);

/// Text counted at once, in bytes: a long word takes time with the square of its length.
const PIECE: usize = 2 << 10;
/// Tokens that become text at once.
const PART: usize = 1 << 10;
/// Bytes of a token, about, where there is no table.
const BYTES: usize = 4;

fn unpacked() -> Option<CoreBPE> {
    let mut table = Vec::new();
    ZlibDecoder::new(PACKED).read_to_end(&mut table).ok()?;
    let (count, rest) = table.split_first_chunk::<4>()?;
    let count = usize::try_from(u32::from_le_bytes(*count)).ok()?;
    let (lengths, mut bytes) = rest.split_at_checked(count)?;
    let token = |(length, rank): (&u8, u32)| {
        let (token, after) = bytes.split_at_checked(usize::from(*length))?;
        bytes = after;
        Some((token.to_vec(), rank))
    };
    let tokens = lengths.iter().zip(0..).map(token).collect::<Option<_>>()?;
    let special = SPECIAL.map(|(text, rank)| (text.to_owned(), rank));
    CoreBPE::new(tokens, special.into_iter().collect(), PATTERN).ok()
}

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

/// The text that these tokens are. What is cut within a character is replaced. A text of more than `most` bytes ends somewhere beyond
/// them: few tokens can be a long one. `None`: one of them is not in the table, or there is none.
pub fn text(tokens: &[u32], most: usize) -> Option<String> {
    let table = table()?;
    let mut bytes = Vec::new();
    for part in tokens.chunks(PART) {
        bytes.extend(table.decode_bytes(part).ok()?);
        if bytes.len() > most {
            break;
        }
    }
    let text = String::from_utf8(bytes);
    Some(text.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
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
    fn the_packed_table_is_that_of_the_library() {
        let (own, whole) = (table().unwrap(), tiktoken_rs::cl100k_base().unwrap());
        for token in 0..SPECIAL[4].1 + 2 {
            let text = |table: &CoreBPE| table.decode_bytes(&[token]).ok();
            assert_eq!(text(own), text(&whole), "{token}");
        }
        for text in [
            "It's 12345 o'clock, WE'LL go.\r\n\n\tfn main() { }  ",
            "Größe: 12 m² 🦀   \u{a0}中文のテキスト",
            "<|endoftext|>",
        ] {
            let (own, whole) = (own.encode_ordinary(text), whole.encode_ordinary(text));
            assert_eq!(own, whole, "{text}");
        }
    }

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
        assert_eq!(text(&tokens, said.len()).as_deref(), Some(said));
        assert_eq!(text(&[], 0).as_deref(), Some(""));
        assert_eq!(text(&[u32::MAX], 0), None);
        // Parts of a text may end within a character.
        let long = said.repeat(PART);
        let tokens = table().unwrap().encode_ordinary(&long);
        assert_eq!(text(&tokens, long.len()).as_deref(), Some(&*long));
        let begun = text(&tokens, 10).unwrap().len();
        assert!(begun > 10 && begun < long.len(), "{begun}");
    }

    #[test]
    fn a_word_without_end_takes_no_time_without_end() {
        let endless = "é".repeat(200_000);
        assert!(count(&endless) > 0);
    }
}
