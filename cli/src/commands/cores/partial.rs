//! A file of records on its way: until it is whole it bears another name than the one asked for.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tg_core_file::msgpack;

use crate::client::{Error, Result};

/// A file asked for, and the one that is written.
#[derive(Debug)]
pub(in crate::commands) struct Partial {
    wanted: PathBuf,
    path: PathBuf,
}

impl Partial {
    /// Nothing is made yet.
    pub(in crate::commands) fn of(wanted: &Path) -> Self {
        let mut path = wanted.as_os_str().to_owned();
        path.push(".part");
        Self {
            wanted: wanted.to_owned(),
            path: path.into(),
        }
    }

    /// The file that is written.
    pub(in crate::commands) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the file, for records to go in.
    pub(in crate::commands) fn create(&self) -> Result<Writer> {
        let file = File::create(&self.path).map_err(|error| Error::file(&self.path, error))?;
        Ok(Writer {
            file: BufWriter::new(file),
            path: self.path.clone(),
            bytes: Vec::new(),
        })
    }

    /// The file is whole.
    pub(in crate::commands) fn complete(&self) -> Result<()> {
        std::fs::rename(&self.path, &self.wanted).map_err(|error| Error::file(&self.wanted, error))
    }

    /// The file will never be whole.
    pub(in crate::commands) fn discard(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Writes records.
#[derive(Debug)]
pub(in crate::commands) struct Writer {
    file: BufWriter<File>,
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Writer {
    /// Writes a record as MessagePack.
    pub(in crate::commands) fn msgpack(&mut self, record: &Value) -> Result<()> {
        self.bytes.clear();
        msgpack::encode(record, &mut self.bytes);
        let written = self.file.write_all(&self.bytes);
        written.map_err(|error| Error::file(&self.path, error))
    }

    /// Writes a record as a line of JSON.
    pub(in crate::commands) fn json(&mut self, record: &Value) -> Result<()> {
        let written = writeln!(self.file, "{record}");
        written.map_err(|error| Error::file(&self.path, error))
    }

    /// Everything is on the disk.
    pub(in crate::commands) fn end(self) -> Result<()> {
        let file = self.file.into_inner();
        let file = file.map_err(|error| Error::file(&self.path, error.error()))?;
        file.sync_all()
            .map_err(|error| Error::file(&self.path, error))
    }
}
