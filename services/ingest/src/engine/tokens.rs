//! The token chunker: windows of tokens of `cl100k_base` that step by what does not overlap. Borders move to
//! the nearest character before them, so every chunk is a slice of the text.

use super::recursive::Slice;

/// Cuts a text. Sizes are tokens; `overlap` must be less than `size`.
pub fn split(text: &str, size: usize, overlap: usize) -> Vec<Slice> {
    let ends = token_ends(text);
    let (size, step) = (size.max(1), size.saturating_sub(overlap).max(1));
    let border = |token: usize| {
        let mut at = if token == 0 { 0 } else { ends[token - 1] };
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let mut slices = Vec::new();
    let (mut from, mut counted, mut offset) = (0, 0, 0);
    while from < ends.len() {
        let to = (from + size).min(ends.len());
        let bytes = border(from)..border(to);
        offset += text[counted..bytes.start].chars().count();
        counted = bytes.start;
        let chunk = &text[bytes.clone()];
        if !chunk.trim().is_empty() {
            slices.push(Slice {
                length: chunk.chars().count(),
                offset,
                bytes,
            });
        }
        if to == ends.len() {
            break;
        }
        from += step;
    }
    slices
}

/// Where each token ends, in bytes.
fn token_ends(text: &str) -> Vec<usize> {
    let Some(table) = tg_tokens::table() else {
        return Vec::new();
    };
    let (mut end, mut ends) = (0, Vec::new());
    for piece in pieces(text) {
        for token in table.encode_ordinary(piece) {
            end += table.decode_bytes(&[token]).map_or(0, |bytes| bytes.len());
            ends.push(end.min(text.len()));
        }
    }
    ends
}

/// White space in a row that is made to tokens at once, in characters. At a million the pattern behind the table gives up, and the
/// library panics.
const BLANKS: usize = 4 << 10;

/// A text in pieces that have no longer white space.
fn pieces(text: &str) -> Vec<&str> {
    let (mut pieces, mut from, mut blanks) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        blanks = if c.is_whitespace() { blanks + 1 } else { 0 };
        if blanks == BLANKS {
            let end = at + c.len_utf8();
            pieces.push(&text[from..end]);
            (from, blanks) = (end, 0);
        }
    }
    pieces.push(&text[from..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_tokens_overlap_and_cover_the_text() {
        // Each of these words is one token with the blank before it.
        let text = vec![" word"; 600].join("");
        let slices = split(&text, 250, 15);
        let lengths: Vec<usize> = slices.iter().map(|slice| slice.length / 5).collect();
        assert_eq!(lengths, [250, 250, 130]);
        assert_eq!(slices[1].offset, 235 * 5);
        assert!(split("", 250, 15).is_empty());
        assert!(split("   ", 250, 15).is_empty());
    }

    #[test]
    fn white_space_without_end_is_cut_as_well() {
        let text = format!("a{}b", " ".repeat(1_000_001));
        let slices = split(&text, 1000, 0);
        let chunks = slices.iter().map(|slice| &text[slice.bytes.clone()]);
        assert_eq!(chunks.map(str::trim).collect::<Vec<_>>(), ["a", "b"]);
        // Pieces are the text, and most texts are one.
        let wide = "\u{3000}".repeat(BLANKS + 1);
        for (text, count) in [("", 1), ("a b\n\n c", 1), (wide.as_str(), 2)] {
            assert_eq!(pieces(text).len(), count);
            assert_eq!(pieces(text).concat(), text);
        }
    }

    #[test]
    fn borders_fall_between_characters() {
        let text = "東京𝄞🦀é".repeat(40);
        let slices = split(&text, 7, 2);
        for slice in &slices {
            let chunk = &text[slice.bytes.clone()];
            assert_eq!(slice.length, chunk.chars().count());
            assert_eq!(slice.offset, text[..slice.bytes.start].chars().count());
        }
        assert_eq!(slices.last().map(|slice| slice.bytes.end), Some(text.len()));
    }
}
