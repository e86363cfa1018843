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
    let mut end = 0;
    let tokens = table.encode_ordinary(text);
    tokens
        .iter()
        .map(|token| {
            end += table.decode_bytes(&[*token]).map_or(0, |bytes| bytes.len());
            end.min(text.len())
        })
        .collect()
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
