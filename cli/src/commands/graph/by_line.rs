//! Reads a file one line at a time, so that whoever parses it knows how far the parser has read. Never holds more than a reader's buffer.

use std::cell::Cell;
use std::io::{BufRead, Read, Result};
use std::rc::Rc;

/// How many lines were handed over, the one that is read now among them.
#[derive(Debug, Clone, Default)]
pub(super) struct Line(Rc<Cell<u64>>);

impl Line {
    /// The number of the line that was handed over last, from 1.
    pub(super) fn number(&self) -> u64 {
        self.0.get()
    }
}

/// A reader that hands over at most one line a call.
pub(super) struct ByLine<R> {
    from: R,
    line: Line,
    /// What comes next begins a line.
    begins: bool,
}

impl<R: BufRead> ByLine<R> {
    /// Reads on from here, which is the beginning of line 1.
    pub(super) fn new(from: R) -> (Self, Line) {
        let line = Line::default();
        let reader = Self {
            from,
            line: line.clone(),
            begins: true,
        };
        (reader, line)
    }
}

impl<R: BufRead> Read for ByLine<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        let ready = self.from.fill_buf()?;
        let ready = &ready[..ready.len().min(into.len())];
        if ready.is_empty() {
            return Ok(0);
        }
        let end = ready.iter().position(|byte| *byte == b'\n');
        let count = end.map_or(ready.len(), |at| at + 1);
        into[..count].copy_from_slice(&ready[..count]);
        self.from.consume(count);
        if self.begins {
            self.line.0.set(self.line.0.get() + 1);
        }
        self.begins = end.is_some();
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn each_call_gives_one_line_or_a_part_of_one() {
        let text = "one\n\na line that is longer than the buffer\nlast";
        let (mut reader, line) = ByLine::new(BufReader::with_capacity(8, text.as_bytes()));
        let mut read = Vec::new();
        let mut whole = String::new();
        let mut room = [0; 6];
        loop {
            let count = reader.read(&mut room).expect("read");
            if count == 0 {
                break;
            }
            let part = std::str::from_utf8(&room[..count]).expect("text");
            assert!(!part.trim_end_matches('\n').contains('\n'), "{part:?}");
            whole.push_str(part);
            read.push(line.number());
        }
        assert_eq!(whole, text);
        read.dedup();
        assert_eq!(read, [1, 2, 3, 4]);
    }
}
