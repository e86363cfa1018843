//! Reading files that the user names; `-` is standard input. It never writes.

use std::cell::Cell;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;

use crate::client::{Error, Result};

/// A whole file, or standard input for `-`.
///
/// # Errors
/// [`Error::File`] where it cannot be read.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .map_err(|error| Error::file("<stdin>", error))?;
        return Ok(bytes);
    }
    std::fs::read(path).map_err(|error| Error::file(path, error))
}

/// A whole text file, or standard input for `-`.
///
/// # Errors
/// [`Error::File`] where it cannot be read or is not UTF-8.
pub fn read_text(path: &Path) -> Result<String> {
    String::from_utf8(read_bytes(path)?).map_err(|_| Error::file(path, "is not UTF-8 text"))
}

/// Passes over a byte order mark.
///
/// # Errors
/// When nothing can be read.
pub fn pass_mark(reader: &mut impl io::BufRead) -> io::Result<()> {
    if reader.fill_buf()?.starts_with(b"\xef\xbb\xbf") {
        reader.consume(3);
    }
    Ok(())
}

/// Bytes that may be read before the next piece must have ended; shared by a [`Bounded`] and whoever knows
/// where pieces end.
#[derive(Debug, Clone)]
pub struct Allowance {
    left: Rc<Cell<u64>>,
    longest: u64,
}

impl Allowance {
    /// So many bytes for each piece.
    pub fn new(longest: u64) -> Self {
        Self {
            left: Rc::new(Cell::new(longest)),
            longest,
        }
    }

    /// A piece has ended, or is passed over without being kept.
    pub fn renew(&self) {
        self.left.set(self.longest);
    }

    /// What comes is passed over, however long it is, until [`Self::renew`].
    pub fn suspend(&self) {
        self.left.set(u64::MAX);
    }
}

/// A reader that fails instead of letting a piece grow without end.
#[derive(Debug)]
pub struct Bounded<R> {
    inner: R,
    allowance: Allowance,
}

impl<R: Read> Bounded<R> {
    /// Reads `inner` as far as the allowance goes.
    pub fn new(inner: R, allowance: Allowance) -> Self {
        Self { inner, allowance }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.allowance.left.get();
        if left == 0 {
            let text = format!("a record is longer than {} bytes", self.allowance.longest);
            return Err(io::Error::other(text));
        }
        let read = self.inner.read(into)?;
        let taken = u64::try_from(read).unwrap_or(u64::MAX);
        self.allowance.left.set(left.saturating_sub(taken));
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_that_does_not_end_is_an_error() {
        let allowance = Allowance::new(8);
        let mut reader = Bounded::new(io::repeat(b'x'), allowance.clone());
        let mut piece = [0; 8];
        reader.read_exact(&mut piece).expect("as long as allowed");
        let error = reader.read_exact(&mut piece).expect_err("too long");
        assert!(error.to_string().contains("longer than 8 bytes"));
        allowance.renew();
        reader.read_exact(&mut piece).expect("the next piece");
        allowance.suspend();
        reader.read_exact(&mut [0; 64]).expect("passed over");
    }
}
