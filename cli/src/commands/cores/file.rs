//! A core file as a sequence of records, read piece by piece. Never held whole.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tg_core_file::msgpack::{self, Scanner};
use tg_schemas::limits;

use crate::client::{Error, Result};

/// Bytes read at once.
const READ: usize = 256 << 10;
/// Longest record; the gateway takes no longer frame.
const LONGEST: usize = limits::SOCKET_ANSWER;

/// The records of a file.
pub(super) struct Records {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    scanner: Scanner,
    /// Records read so far.
    number: u64,
    ended: bool,
}

impl Records {
    /// Opens a file.
    pub(super) fn open(path: &Path) -> Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            file: File::open(path).map_err(|error| Error::file(path, error))?,
            buffer: Vec::new(),
            scanner: Scanner::default(),
            number: 0,
            ended: false,
        })
    }

    /// The next record and the bytes it takes; `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<(Value, usize)>> {
        loop {
            let end = self.scanner.end(&self.buffer);
            if let Some(end) = end.map_err(|fault| self.fault(fault))? {
                let value = msgpack::decode(&self.buffer[..end]);
                let value = value.map_err(|fault| self.fault(fault))?;
                self.buffer.drain(..end);
                self.scanner = Scanner::default();
                self.number += 1;
                return Ok(Some((value, end)));
            }
            if self.buffer.len() > LONGEST {
                return Err(self.fault(format!("is larger than {LONGEST} bytes")));
            }
            if self.ended {
                return match self.buffer.is_empty() {
                    true => Ok(None),
                    false => Err(self.fault(msgpack::Malformed::Short)),
                };
            }
            let room = u64::try_from(READ).unwrap_or(u64::MAX);
            let read = self.file.by_ref().take(room).read_to_end(&mut self.buffer);
            let read = read.map_err(|error| Error::file(&self.path, error))?;
            self.ended = read == 0;
        }
    }

    /// What is wrong with the record that comes next, or with the one just read.
    pub(super) fn wrong(&self, why: impl std::fmt::Display) -> Error {
        Error::file(&self.path, format!("record {}: {why}", self.number))
    }

    fn fault(&self, why: impl std::fmt::Display) -> Error {
        Error::file(&self.path, format!("record {}: {why}", self.number + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_file_is_read_record_by_record_and_a_cut_one_says_where() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("core");
        let mut bytes = Vec::new();
        let large = "x".repeat(READ * 2);
        for record in [
            json!(["t", {"t": []}]),
            json!(["lb", {"i": "d", "d": large}]),
        ] {
            msgpack::encode(&record, &mut bytes);
        }
        std::fs::write(&path, &bytes).expect("written");
        let mut records = Records::open(&path).expect("opened");
        assert_eq!(records.next().expect("read").expect("one").0[0], "t");
        assert_eq!(records.next().expect("read").expect("one").0[0], "lb");
        assert!(records.next().expect("read").is_none());

        std::fs::write(&path, &bytes[..bytes.len() - 1]).expect("written");
        let mut records = Records::open(&path).expect("opened");
        records.next().expect("read");
        let error = records.next().expect_err("cut off").to_string();
        assert!(error.contains("record 2: is cut off"), "{error}");
    }
}
