//! Rules of an upload: how it is cut, and how long it may take.

use tg_schemas::{Error, ErrorCode, limits};
use tg_storage::blob::BlobId;

use crate::error::invalid;

/// Size of a chunk when the client names none.
pub(crate) const CHUNK: u64 = limits::UPLOAD_CHUNK as u64;
/// Largest chunk: one message must carry it.
const LARGEST_CHUNK: u64 = limits::CONTENT as u64;
/// Most chunks of an upload.
const MOST_CHUNKS: u64 = 100_000;
/// Largest document.
const LARGEST: u64 = 1 << 40;
/// Milliseconds after its beginning that a session is forgotten.
pub(crate) const LIFE: i64 = 24 * 60 * 60 * 1000;

/// An upload in progress, or one that ended less than a session's life ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) workspace: String,
    /// Id of the document it will be.
    pub(crate) document: String,
    /// The document's metadata as JSON, whole.
    pub(crate) metadata: String,
    /// Bytes in all.
    pub(crate) size: u64,
    /// Bytes of each chunk but the last.
    pub(crate) chunk: u64,
    /// When it began, milliseconds since the Unix epoch.
    pub(crate) created: i64,
    /// Hash of the content once complete; empty before.
    pub(crate) object: String,
    /// Hash of the content from when all of it was found to be there until it is complete, and later; empty
    /// before.
    pub(crate) adopting: String,
    /// A document of the id may be there: it gets the content.
    pub(crate) replaces: bool,
    /// The hash that the content must have, where the client said it; empty otherwise.
    pub(crate) announced: String,
}

impl Session {
    /// Number of chunks.
    pub(crate) fn chunks(&self) -> u64 {
        self.size.div_ceil(self.chunk.max(1))
    }

    /// Whether content of a hash is what the client said that it would send.
    pub(crate) fn takes(&self, hash: &BlobId) -> bool {
        self.announced.is_empty() || self.announced == hash.to_string()
    }

    /// Whether it is forgotten.
    pub(crate) fn expired(&self, now: i64) -> bool {
        now - self.created >= LIFE
    }

    /// Checks a chunk's position and length. Returns its offset.
    pub(crate) fn check(&self, position: i64, length: u64) -> Result<u64, Error> {
        let chunks = self.chunks();
        let at = u64::try_from(position)
            .ok()
            .filter(|at| *at < chunks)
            .ok_or_else(|| {
                let last = chunks.saturating_sub(1);
                invalid(format!(
                    "Invalid chunk index {position}: must be 0 to {last}"
                ))
            })?;
        let offset = at * self.chunk;
        let expected = self.chunk.min(self.size - offset);
        if length != expected {
            return Err(invalid(format!(
                "content: chunk {at} has {length} bytes and must have {expected} (chunk-size is {})",
                self.chunk
            )));
        }
        Ok(offset)
    }

    /// Positions that did not arrive, of sorted ones that did.
    pub(crate) fn missing(&self, arrived: &[u64]) -> Vec<u64> {
        let mut arrived = arrived.iter().peekable();
        (0..self.chunks())
            .filter(|at| arrived.next_if_eq(&at).is_none())
            .collect()
    }
}

/// What an upload announces.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// Bytes in all.
    pub(crate) total: i64,
    /// Bytes of a chunk; 0 for the usual.
    pub(crate) chunk: i64,
    /// The document may be there already.
    pub(crate) replaces: bool,
    /// SHA-256 of the content in hexadecimal digits; may be empty.
    pub(crate) hash: String,
}

/// The hash that an upload announces, as the library writes hashes; empty if it announces none.
pub(crate) fn announced(hash: &str) -> Result<String, Error> {
    match hash {
        "" => Ok(String::new()),
        hash => BlobId::parse(hash)
            .map(|hash| hash.to_string())
            .ok_or_else(|| invalid("content-hash: must be a SHA-256 in 64 hexadecimal digits")),
    }
}

/// Checks what an upload announces. Returns the size in bytes and the size of a chunk.
pub(crate) fn sizes(total: i64, chunk: i64) -> Result<(u64, u64), Error> {
    let size = u64::try_from(total).ok().filter(|size| *size > 0);
    let size = size.ok_or_else(|| invalid("total-size: must be positive"))?;
    if size > LARGEST {
        let text = format!("total-size: is more than {LARGEST} bytes");
        return Err(Error::new(ErrorCode::TooLarge, text));
    }
    let chunk = match chunk {
        0 => CHUNK,
        given => u64::try_from(given)
            .map_err(|_| invalid(format!("Chunk size {given} is below minimum 1")))?,
    };
    if chunk > LARGEST_CHUNK {
        let text = format!("chunk-size: is more than {LARGEST_CHUNK} bytes");
        return Err(Error::new(ErrorCode::TooLarge, text));
    }
    let least = size.div_ceil(MOST_CHUNKS);
    if chunk < least {
        return Err(invalid(format!(
            "Chunk size {chunk} is below minimum {least}"
        )));
    }
    Ok((size, chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(size: u64, chunk: u64) -> Session {
        Session {
            id: "u".into(),
            workspace: "w".into(),
            document: "d".into(),
            metadata: String::new(),
            size,
            chunk,
            created: 1000,
            object: String::new(),
            adopting: String::new(),
            replaces: false,
            announced: String::new(),
        }
    }

    #[test]
    fn what_was_announced_is_taken_and_nothing_else() {
        let hash = BlobId::of(b"hello");
        let mut upload = session(5, 5);
        assert!(upload.takes(&hash));
        upload.announced = announced(&hash.to_string().to_uppercase()).unwrap();
        assert!(upload.takes(&hash) && !upload.takes(&BlobId::of(b"hallo")));
        assert_eq!(announced(""), Ok(String::new()));
        for wrong in ["2cf2", "x", &"g".repeat(64), &"0".repeat(66)] {
            let error = announced(wrong).unwrap_err();
            assert!(
                error.message.starts_with("content-hash: must be"),
                "{error}"
            );
        }
    }

    #[test]
    fn every_chunk_but_the_last_is_whole() {
        let upload = session(10, 4);
        assert_eq!(upload.chunks(), 3);
        assert_eq!(upload.check(0, 4), Ok(0));
        assert_eq!(upload.check(2, 2), Ok(8));
        let short = upload.check(1, 3).unwrap_err();
        assert_eq!(
            short.message,
            "content: chunk 1 has 3 bytes and must have 4 (chunk-size is 4)"
        );
        assert!(upload.check(2, 4).is_err());
        for outside in [-1, 3, i64::MAX] {
            let error = upload.check(outside, 4).unwrap_err();
            assert!(error.message.contains("must be 0 to 2"), "{error}");
        }
        assert_eq!(upload.missing(&[1]), [0, 2]);
        assert!(upload.missing(&[0, 1, 2]).is_empty());
        assert!(upload.expired(1000 + LIFE) && !upload.expired(999 + LIFE));
        assert_eq!(session(8, 4).chunks(), 2);
    }

    #[test]
    fn what_is_announced_is_checked() {
        assert_eq!(sizes(5, 0), Ok((5, CHUNK)));
        assert_eq!(sizes(5, 1), Ok((5, 1)));
        for (total, chunk, says) in [
            (0, 0, "total-size: must be positive"),
            (-1, 4, "total-size: must be positive"),
            (5, -1, "Chunk size -1 is below minimum 1"),
            (1 << 30, 1, "Chunk size 1 is below minimum 10738"),
            (5, 1 << 40, "chunk-size: is more than 11796480 bytes"),
            (1 << 30, 12 << 20, "chunk-size: is more than 11796480 bytes"),
        ] {
            assert_eq!(sizes(total, chunk).unwrap_err().message, says);
        }
    }
}
