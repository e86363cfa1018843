//! Markdown, cut by headings, then blocks, then lines, sentences and words, by `text-splitter`. What that takes grows with
//! the square of its text, so it is given a block at a time; blocks end before headings.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use text_splitter::{ChunkConfig, ChunkSizer, MarkdownSplitter};

use super::recursive::{self, Slice};

/// Bytes of a block, where chunks are smaller.
const BLOCK: usize = 64 << 10;
/// The same where they are large: within a block the time grows with the square.
const LARGEST: usize = 256 << 10;

/// Cuts a text. Sizes are characters; `overlap` must be less than `size`.
pub fn split(text: &str, size: usize, overlap: usize) -> Vec<Slice> {
    let size = size.max(1);
    let config = ChunkConfig::new(size).with_overlap(overlap.min(size - 1));
    let Ok(config) = config else {
        return Vec::new();
    };
    let splitter = MarkdownSplitter::new(config);
    let mut slices: Vec<Slice> = Vec::new();
    // Characters up to a byte, both of which only grow.
    let (mut counted, mut offset) = (0, 0);
    let block = BLOCK
        .max(size.saturating_mul(8))
        .min(LARGEST.max(size.saturating_add(size)));
    for block in blocks(text, block) {
        for range in ranges(&splitter, &text[block.clone()], (size, overlap)) {
            let end = block.start + range.end;
            // Where chunks overlap, the splitter may begin one before the one that it cut last.
            let start = counted.max(block.start + range.start);
            let Some(chunk) = text
                .get(start..end)
                .filter(|chunk| !chunk.trim().is_empty())
            else {
                continue;
            };
            offset += text[counted..start].chars().count();
            counted = start;
            slices.push(Slice {
                bytes: start..end,
                offset,
                length: chunk.chars().count(),
            });
        }
    }
    slices
}

/// Bytes of the chunks of a block. The parser behind the splitter panics at some definition lists, such as the last lines of a
/// quotation: such a block is cut as plain text.
fn ranges<S: ChunkSizer>(
    splitter: &MarkdownSplitter<S>,
    block: &str,
    (size, overlap): (usize, usize),
) -> Vec<Range<usize>> {
    let parsed = AssertUnwindSafe(|| -> Vec<Range<usize>> {
        let chunks = splitter.chunk_indices(block);
        chunks.map(|(at, chunk)| at..at + chunk.len()).collect()
    });
    catch_unwind(parsed).unwrap_or_else(|_| {
        let slices = recursive::split(block, size, overlap).into_iter();
        slices.map(|slice| slice.bytes).collect()
    })
}

/// Blocks of about so many bytes, which end before the last heading in their second half, else behind the last blank
/// line, line or blank there. Headings in blocks of code count, too: a border there costs little.
fn blocks(text: &str, limit: usize) -> Vec<Range<usize>> {
    let (mut blocks, mut start) = (Vec::new(), 0);
    while text.len() - start > limit {
        let floor = |at: usize| (0..=at).rev().find(|at| text.is_char_boundary(*at));
        let half = floor(start + limit / 2).unwrap_or(start);
        let end = floor(start + limit).unwrap_or(start);
        let second = &text[half..end];
        let borders = [("\n#", 1), ("\n\n", 2), ("\n", 1), (" ", 1)];
        let cut = borders.iter().find_map(|(border, behind)| {
            let at = second.rfind(border)?;
            Some(half + at + behind)
        });
        let cut = cut.filter(|cut| *cut > start).unwrap_or(end);
        blocks.push(start..cut);
        start = cut;
    }
    blocks.push(start..text.len());
    blocks
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tg_testkit::machine::worked_for;

    use super::*;

    fn chunks(text: &str, size: usize) -> Vec<&str> {
        let slices = split(text, size, 0);
        slices.into_iter().map(|slice| &text[slice.bytes]).collect()
    }

    #[test]
    fn sections_stay_whole_where_they_fit() {
        let text = "# Lamps\n\nOf lamps.\n\n## Blue lamps\n\nThey are blue and made of glass.\n\n## Red lamps\n\n\
                    They are red and made of tin.\n";
        assert_eq!(
            chunks(text, 60),
            [
                "# Lamps\n\nOf lamps.",
                "## Blue lamps\n\nThey are blue and made of glass.",
                "## Red lamps\n\nThey are red and made of tin.",
            ]
        );
        // A block of code is not cut at its blank lines if it fits.
        let text =
            "Some words before it.\n\n```\nfn a() {\n\n    b\n}\n```\n\nSome words behind it.";
        assert_eq!(chunks(text, 35)[1], "```\nfn a() {\n\n    b\n}\n```");
    }

    /// The parser panics at each of them.
    #[test]
    fn a_definition_within_something_else_is_cut_as_plain_text() {
        for text in [
            "> term\n> : what it is\n\n",
            "one\n:\n    two\n    :\n        three\n        :\n\nnext\n:\n",
            "one\n:   two\n    :   three\n        :   four\n\nnext\n",
        ] {
            assert_eq!(chunks(text, 2000).concat().trim(), text.trim());
            for size in 1..20 {
                assert!(!split(text, size, size / 2).is_empty(), "{text}");
            }
        }
    }

    #[test]
    fn blocks_are_bounded_and_lose_nothing() {
        let section = format!("# Head\n\n{}\n\n", "some words ".repeat(20));
        let text = section.repeat(30);
        let blocks = blocks(&text, 1000);
        assert!(blocks.len() > 6);
        let mut end = 0;
        for block in blocks {
            assert!(block.start == end && block.len() <= 1000);
            assert!(text[block.clone()].starts_with("# Head"));
            end = block.end;
        }
        assert_eq!(end, text.len());
        assert_eq!(super::blocks(&"é".repeat(40), 9).concat_len(), 80);
    }

    trait ConcatLen {
        fn concat_len(&self) -> usize;
    }

    impl ConcatLen for Vec<Range<usize>> {
        fn concat_len(&self) -> usize {
            self.iter().map(|range| range.len()).sum()
        }
    }

    /// Four times the text may take about four times as long, not sixteen.
    #[test]
    fn time_grows_with_the_text_and_not_with_its_square() {
        for part in ["letters", "[", "> ", "*a ", "# a\n", "- a\n", "| a | b |\n"] {
            // As a processor works for it: others may have the processor meanwhile.
            let once = |bytes: usize| {
                let text = part.repeat(bytes / part.len());
                worked_for(|| assert!(!split(&text, 2000, 100).is_empty()))
            };
            // The best of three. Of long ones the first that is good is enough.
            let short = (0..3).map(|_| once(128 << 10)).min().unwrap_or_default();
            let most = short * 9 + Duration::from_millis(200);
            let mut long = (0..3).map(|_| once(512 << 10));
            assert!(
                long.any(|long| long < most),
                "{part:?}: {short:?}, {most:?}"
            );
        }
    }
}
