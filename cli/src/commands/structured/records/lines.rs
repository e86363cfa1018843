//! Lines that end with a carriage return alone, as some programs still write them.

use std::io::{self, BufRead, Read};

/// Whether a file ends its lines so: its beginning has carriage returns and not one line feed.
pub(super) fn ends_with_returns(reader: &mut impl BufRead) -> bool {
    // Who reads on learns of what went wrong.
    reader
        .fill_buf()
        .is_ok_and(|begin| begin.contains(&b'\r') && !begin.contains(&b'\n'))
}

/// A file whose carriage returns are line feeds.
pub(super) struct Returns<R> {
    inner: R,
    piece: Vec<u8>,
    at: usize,
}

impl<R: BufRead> Returns<R> {
    pub(super) fn new(inner: R) -> Self {
        Self {
            inner,
            piece: Vec::new(),
            at: 0,
        }
    }
}

impl<R: BufRead> Read for Returns<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let ready = self.fill_buf()?;
        let count = ready.len().min(into.len());
        into[..count].copy_from_slice(&ready[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Returns<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.piece.len() {
            // As large as the buffer of who reads the file.
            let next = self.inner.fill_buf()?;
            self.piece.clear();
            self.piece.extend_from_slice(next);
            let count = next.len();
            self.inner.consume(count);
            let returns = self.piece.iter_mut().filter(|byte| **byte == b'\r');
            returns.for_each(|byte| *byte = b'\n');
            self.at = 0;
        }
        Ok(&self.piece[self.at..])
    }

    fn consume(&mut self, count: usize) {
        self.at = (self.at + count).min(self.piece.len());
    }
}
