//! Source code, cut between the items that begin at its margin: functions, types, sections. Works for any language whose
//! lines are indented, without a grammar of it (see `docs/decisions`).

use std::ops::Range;

use super::recursive::{self, Slice};

/// Cuts a text. Items that fit stay whole, and follow each other in a chunk up to `size` characters; one that does not fit
/// is cut at blank lines and lines, with `overlap`.
pub fn split(text: &str, size: usize, overlap: usize) -> Vec<Slice> {
    let mut slices = Vec::new();
    let mut open: Option<Slice> = None;
    let mut offset = 0;
    for bytes in items(text) {
        let item = Slice {
            length: text[bytes.clone()].chars().count(),
            offset,
            bytes,
        };
        offset += item.length;
        match &mut open {
            Some(chunk) if chunk.length + item.length <= size => {
                chunk.bytes.end = item.bytes.end;
                chunk.length += item.length;
            }
            _ => {
                let full = open.replace(item);
                keep(text, full, size, overlap, &mut slices);
            }
        }
    }
    keep(text, open, size, overlap, &mut slices);
    slices
}

/// Keeps a chunk without the line ends behind it, or what it has to be cut into.
fn keep(text: &str, chunk: Option<Slice>, size: usize, overlap: usize, to: &mut Vec<Slice>) {
    let Some(mut chunk) = chunk else { return };
    let whole = &text[chunk.bytes.clone()];
    if chunk.length > size {
        to.extend(
            recursive::split(whole, size, overlap)
                .into_iter()
                .map(|part| Slice {
                    bytes: chunk.bytes.start + part.bytes.start..chunk.bytes.start + part.bytes.end,
                    offset: chunk.offset + part.offset,
                    length: part.length,
                }),
        );
        return;
    }
    let kept = whole.trim_end();
    chunk.length -= whole[kept.len()..].chars().count();
    chunk.bytes.end = chunk.bytes.start + kept.len();
    if !kept.is_empty() {
        to.push(chunk);
    }
}

/// Ranges that make up the text; each but the first begins behind a blank line, with a line at the margin.
fn items(text: &str) -> Vec<Range<usize>> {
    let (mut items, mut start, mut at, mut blank) = (Vec::new(), 0, 0, false);
    for line in text.split_inclusive('\n') {
        if blank && at > start && begins(line) {
            items.push(start..at);
            start = at;
        }
        blank = line.trim().is_empty();
        at += line.len();
    }
    items.push(start..text.len());
    items
}

/// Whether a line stands at the margin and closes nothing.
pub(super) fn begins(line: &str) -> bool {
    let first = line.chars().next();
    first.is_some_and(|c| !c.is_whitespace() && !matches!(c, '}' | ')' | ']' | '<'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_stay_whole_where_they_fit() {
        let python =
            "import os\n\ndef lamp():\n    a = 1\n\n    return a\n\n\ndef shade():\n    return 2\n";
        let slices = split(python, 40, 0);
        let chunks: Vec<&str> = slices
            .iter()
            .map(|slice| &python[slice.bytes.clone()])
            .collect();
        assert_eq!(
            chunks,
            [
                "import os",
                "def lamp():\n    a = 1\n\n    return a",
                "def shade():\n    return 2"
            ]
        );
        assert_eq!(split(python, 1000, 0).len(), 1);
        // What does not fit is cut as text is.
        let long = format!("fn a() {{\n{}}}\n", "    let a = 1;\n\n".repeat(20));
        let slices = split(&long, 100, 10);
        assert!(slices.len() > 3 && slices.iter().all(|slice| slice.length <= 110));
    }
}
