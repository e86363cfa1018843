//! The recursive chunker: cuts at blank lines, else lines, else words, else anywhere, into pieces that are
//! merged again up to a size. Sizes are characters (Unicode scalar values). Every chunk is a slice of the text.

use std::collections::VecDeque;
use std::ops::Range;

/// Tried in this order; after the last, every character is a piece.
const SEPARATORS: [&str; 3] = ["\n\n", "\n", " "];

/// A chunk: bytes of the text, and where it begins and how long it is in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// Bytes.
    pub bytes: Range<usize>,
    /// Characters before it.
    pub offset: usize,
    /// Its characters.
    pub length: usize,
}

/// Cuts a text. `overlap` must be less than `size`.
pub fn split(text: &str, size: usize, overlap: usize) -> Vec<Slice> {
    let mut cutter = Cutter {
        text,
        size: size.max(1),
        overlap: overlap.min(size.max(1) - 1),
        slices: Vec::new(),
    };
    let all = Piece {
        bytes: 0..text.len(),
        offset: 0,
        length: text.chars().count(),
    };
    if !text.is_empty() {
        cutter.split(all, &SEPARATORS);
    }
    cutter.slices
}

type Piece = Slice;

impl Piece {
    /// One after the last byte that counts.
    fn end(&self) -> usize {
        self.bytes.end
    }
}

struct Cutter<'a> {
    text: &'a str,
    size: usize,
    overlap: usize,
    slices: Vec<Slice>,
}

impl Cutter<'_> {
    fn split(&mut self, whole: Piece, separators: &[&str]) {
        let text = self.text;
        let part = &text[whole.bytes.clone()];
        let found = separators
            .iter()
            .position(|separator| part.contains(separator));
        let Some(found) = found else {
            return self.letters(&whole);
        };
        let (separator, finer) = (separators[found], &separators[found + 1..]);
        let mut merger = Merger::new(separator.len());
        let mut at = whole.bytes.start;
        let mut offset = whole.offset;
        for piece in part.split(separator) {
            let piece = Piece {
                bytes: at..at + piece.len(),
                offset,
                length: length(piece),
            };
            at = piece.end() + separator.len();
            offset += piece.length + separator.len();
            if piece.length < self.size {
                self.merge(&mut merger, piece);
            } else {
                self.flush(&mut merger);
                self.split(piece, finer);
            }
        }
        self.flush(&mut merger);
    }

    /// No separator is left: windows that step by what does not overlap.
    fn letters(&mut self, whole: &Piece) {
        let text = self.text;
        let starts: Vec<usize> = match whole.length == whole.bytes.len() {
            true => Vec::new(),
            false => text[whole.bytes.clone()]
                .char_indices()
                .map(|(at, _)| at)
                .collect(),
        };
        let byte = |char: usize| {
            let at = match (starts.is_empty(), starts.get(char)) {
                (true, _) => char,
                (false, Some(at)) => *at,
                (false, None) => whole.bytes.len(),
            };
            whole.bytes.start + at
        };
        let mut from = 0;
        loop {
            let to = (from + self.size).min(whole.length);
            self.keep(Slice {
                bytes: byte(from)..byte(to),
                offset: whole.offset + from,
                length: to - from,
            });
            if to == whole.length {
                return;
            }
            from = to - self.overlap;
        }
    }

    fn merge(&mut self, merger: &mut Merger, piece: Piece) {
        if merger.with(&piece) > self.size && !merger.pieces.is_empty() {
            self.keep(merger.joined());
            // As the reference does: what is kept may make the next chunk longer than `size` by that much.
            while merger.total > self.overlap {
                merger.drop_first();
            }
        }
        merger.push(piece);
    }

    fn flush(&mut self, merger: &mut Merger) {
        if !merger.pieces.is_empty() {
            self.keep(merger.joined());
        }
        merger.pieces.clear();
        merger.total = 0;
    }

    fn keep(&mut self, slice: Slice) {
        if !self.text[slice.bytes.clone()].trim().is_empty() {
            self.slices.push(slice);
        }
    }
}

/// Pieces that follow each other with a separator between.
struct Merger {
    separator: usize,
    pieces: VecDeque<Piece>,
    /// Characters of the pieces and the separators between them.
    total: usize,
}

impl Merger {
    fn new(separator: usize) -> Self {
        Self {
            separator,
            pieces: VecDeque::new(),
            total: 0,
        }
    }

    /// Characters if `piece` came too.
    fn with(&self, piece: &Piece) -> usize {
        let border = if self.pieces.is_empty() {
            0
        } else {
            self.separator
        };
        self.total + border + piece.length
    }

    fn push(&mut self, piece: Piece) {
        self.total = self.with(&piece);
        self.pieces.push_back(piece);
    }

    fn drop_first(&mut self) {
        if let Some(first) = self.pieces.pop_front() {
            let border = if self.pieces.is_empty() {
                0
            } else {
                self.separator
            };
            self.total -= first.length + border;
        }
    }

    fn joined(&self) -> Slice {
        let (first, last) = (self.pieces.front(), self.pieces.back());
        let start = first.map_or(0, |piece| piece.bytes.start);
        Slice {
            bytes: start..last.map_or(start, Piece::end),
            offset: first.map_or(0, |piece| piece.offset),
            length: self.total,
        }
    }
}

fn length(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().count()
    }
}

#[cfg(test)]
mod tests;
