//! Where rows go that are shown and not loaded.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::client::{Error, Result};
use crate::output::JsonArray;
use crate::session::Session;

/// Records of a preview.
pub(super) const PREVIEW: u64 = 3;

/// Where parsed rows go: a file, standard output as JSON, or the first few as a preview.
pub(super) struct Parsed {
    file: Option<(PathBuf, BufWriter<File>)>,
    array: JsonArray,
    /// How many came.
    pub(super) count: u64,
}

impl Parsed {
    pub(super) fn open(path: Option<&Path>) -> Result<Self> {
        let file = match path {
            None => None,
            Some(path) => {
                let file = File::create(path).map_err(|error| Error::file(path, error))?;
                Some((path.to_owned(), BufWriter::new(file)))
            }
        };
        Ok(Self {
            file,
            array: JsonArray::default(),
            count: 0,
        })
    }

    pub(super) fn put(&mut self, session: &mut Session, row: &Value) -> Result<()> {
        self.count += 1;
        if let Some((path, file)) = &mut self.file {
            let start = if self.count == 1 { "[\n" } else { ",\n" };
            let written = write!(file, "{start}{row}");
            return written.map_err(|error| Error::file(&*path, error));
        }
        if session.out.is_json() {
            return self.array.push(&mut session.out, row);
        }
        match self.count <= PREVIEW {
            true => session
                .out
                .line(format!("Record {}: {}", self.count, row["values"])),
            false => Ok(()),
        }
    }

    pub(super) fn end(self, session: &mut Session) -> Result<()> {
        if let Some((path, mut file)) = self.file {
            let end = if self.count == 0 { "[]\n" } else { "\n]\n" };
            let written = file.write_all(end.as_bytes()).and_then(|()| file.flush());
            written.map_err(|error| Error::file(&path, error))?;
            session
                .out
                .talk(format!("Rows saved to {}", path.display()));
            return Ok(());
        }
        match session.out.is_json() {
            true => self.array.end(&mut session.out),
            false => Ok(()),
        }
    }
}
