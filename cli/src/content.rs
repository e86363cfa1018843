//! Content on its way into the library: what is small is held, what is large stays in a file and is read in pieces.
//! It never holds a large document whole, unless somebody asks for all of it.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

/// From this size on content stays in a file, and a document goes into the library in chunks.
pub const WHOLE: usize = 2 << 20;
/// Bytes that are read at once.
const PIECE: usize = 1 << 20;

/// Content of a document.
#[derive(Debug)]
pub struct Content {
    place: Place,
    size: u64,
}

#[derive(Debug)]
enum Place {
    Held(Vec<u8>),
    File(File),
}

impl Content {
    /// The content of a file as it is now, or of standard input for `-`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Self::read(io::stdin());
        }
        let file = File::open(path)?;
        let known = file.metadata()?;
        match known.is_file() && known.len() >= WHOLE as u64 {
            true => Ok(Self {
                place: Place::File(file),
                size: known.len(),
            }),
            false => Self::read(file),
        }
    }

    /// What comes until the end.
    fn read(mut from: impl Read) -> io::Result<Self> {
        let mut spool = Spool::default();
        let mut piece = vec![0; PIECE];
        loop {
            match from.read(&mut piece) {
                Ok(0) => return Ok(spool.content()),
                Ok(read) => spool.push(&piece[..read])?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Bytes in all.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// All of it, where it is small.
    pub fn small(&self) -> Option<&[u8]> {
        match &self.place {
            Place::Held(bytes) => Some(bytes),
            Place::File(_) => None,
        }
    }

    /// At most so many bytes from a place on.
    ///
    /// # Errors
    /// They cannot be read, or are not there any more.
    pub fn piece(&self, from: u64, most: usize) -> io::Result<Vec<u8>> {
        let left = self.size.saturating_sub(from);
        let length = usize::try_from(left).map_or(most, |left| left.min(most));
        match &self.place {
            _ if length == 0 => Ok(Vec::new()),
            Place::Held(bytes) => {
                let from = usize::try_from(from).unwrap_or(bytes.len());
                Ok(bytes[from..][..length].to_vec())
            }
            Place::File(file) => {
                let mut file = file;
                let mut piece = vec![0; length];
                file.seek(SeekFrom::Start(from))?;
                file.read_exact(&mut piece)
                    .map_err(|error| match error.kind() {
                        ErrorKind::UnexpectedEof => io::Error::other("became shorter meanwhile"),
                        _ => error,
                    })?;
                Ok(piece)
            }
        }
    }

    /// Reads it to its end. Whoever waits beside it has a turn after each piece.
    ///
    /// # Errors
    /// As [`Content::piece`].
    pub async fn each(&self, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let mut at = 0;
        while at < self.size {
            let piece = self.piece(at, PIECE)?;
            take(&piece);
            at += piece.len() as u64;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Its SHA-256 in hexadecimal digits. `read` hears of each piece how long it was.
    ///
    /// # Errors
    /// As [`Content::piece`].
    pub async fn hash(&self, read: impl Fn(u64)) -> io::Result<String> {
        let mut hash = Sha256::new();
        self.each(|piece| {
            hash.update(piece);
            read(piece.len() as u64);
        })
        .await?;
        Ok(hex::encode(hash.finalize()))
    }
}

/// Takes content that comes in pieces; what becomes large goes into a file without a name.
#[derive(Debug, Default)]
pub struct Spool {
    held: Vec<u8>,
    file: Option<File>,
    size: u64,
}

impl Spool {
    /// The next piece.
    ///
    /// # Errors
    /// There is no room for the file.
    pub fn push(&mut self, piece: &[u8]) -> io::Result<()> {
        self.size += piece.len() as u64;
        if let Some(file) = &mut self.file {
            return file.write_all(piece);
        }
        self.held.extend_from_slice(piece);
        if self.held.len() >= WHOLE {
            let mut file = tempfile::tempfile()?;
            file.write_all(&std::mem::take(&mut self.held))?;
            self.file = Some(file);
        }
        Ok(())
    }

    /// All that came.
    pub fn content(self) -> Content {
        let place = match self.file {
            Some(file) => Place::File(file),
            None => Place::Held(self.held),
        };
        Content {
            place,
            size: self.size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at / 251) as u8).collect()
    }

    #[tokio::test]
    async fn small_or_large_it_reads_the_same() {
        for length in [0, 5, WHOLE - 1, WHOLE, WHOLE + PIECE + 3] {
            let wanted = bytes(length);
            let named = tempfile::NamedTempFile::new().expect("a file");
            std::fs::write(named.path(), &wanted).expect("written");
            let opened = Content::open(named.path()).expect("open");
            let read = Content::read(wanted.as_slice()).expect("read");
            for content in [opened, read] {
                assert_eq!(content.size(), length as u64);
                assert_eq!(content.small().is_some(), length < WHOLE, "{length}");
                let mut all = Vec::new();
                let each = content.each(|piece| all.extend_from_slice(piece));
                each.await.expect("read");
                assert_eq!(all, wanted);
                let hash = content.hash(|_| {}).await.expect("read");
                assert_eq!(hash, hex::encode(Sha256::digest(&wanted)));
                let last = content.piece(length as u64 / 2, usize::MAX).expect("read");
                assert_eq!(last, &wanted[length / 2..]);
                assert!(content.piece(u64::MAX, 9).expect("read").is_empty());
            }
        }
    }

    #[tokio::test]
    async fn what_became_shorter_is_told() {
        let named = tempfile::NamedTempFile::new().expect("a file");
        named.as_file().set_len(2 * WHOLE as u64).expect("set");
        let content = Content::open(named.path()).expect("open");
        named.as_file().set_len(WHOLE as u64).expect("set");
        let error = content.hash(|_| {}).await.expect_err("shorter");
        assert_eq!(error.to_string(), "became shorter meanwhile");
        assert!(Content::open(Path::new("/no/such")).is_err());
    }
}
