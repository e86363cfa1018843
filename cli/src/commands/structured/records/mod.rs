//! Records of a file, one after the other. A file is never held whole, and no record may be longer than
//! [`LONGEST`] bytes.

mod csv;
#[cfg(test)]
mod fuzz;
mod json;
mod xml;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tg_schemas::limits;

pub(super) use csv::CsvOptions;
pub(super) use xml::{RecordPath, XmlOptions};

use crate::client::{Error, Result};
use crate::files::{Allowance, Bounded};

/// Longest record, in bytes.
pub(super) const LONGEST: u64 = limits::RECORD as u64;
/// Bytes read at once.
const READ: usize = 64 << 10;

/// A record by the names of its fields. What has no value is `null` or absent.
pub(super) type Fields = Map<String, Value>;

/// One record of a file.
#[derive(Debug)]
pub(super) struct Record {
    /// Its number, from 1.
    pub(super) number: u64,
    /// The line it begins at, where that is known.
    pub(super) line: Option<u64>,
    /// Its fields, or why there are none.
    pub(super) fields: Result<Fields, String>,
}

/// How characters are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Also what ASCII is. A byte order mark is passed over.
    Utf8,
    /// One byte a character, ISO 8859-1.
    Latin1,
}

impl Encoding {
    /// The encoding of a name, as Python knows them.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().replace('_', "-").as_str() {
            "" | "utf-8" | "utf8" | "utf-8-sig" | "ascii" | "us-ascii" => Some(Self::Utf8),
            "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" => Some(Self::Latin1),
            _ => None,
        }
    }
}

/// What kind of file it is.
#[derive(Debug)]
pub(super) enum Format {
    Csv(CsvOptions),
    /// Where the records are, below the root.
    Json(Vec<String>),
    Xml(XmlOptions),
}

impl Format {
    /// Its name in a descriptor.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Csv(_) => "csv",
            Self::Json(_) => "json",
            Self::Xml(_) => "xml",
        }
    }
}

/// A file and how it is read.
#[derive(Debug)]
pub(super) struct Input<'a> {
    pub(super) path: &'a Path,
    pub(super) format: &'a Format,
    pub(super) encoding: Encoding,
}

/// Takes records; `false` when it is enough.
pub(super) type Take<'a> = dyn FnMut(Record) -> Result<bool> + 'a;

impl Input<'_> {
    /// Hands over each record until the file ends or it is enough.
    ///
    /// The names of CSV columns are known before the first record: `columns` gets them.
    pub(super) fn each(
        &self,
        columns: &mut dyn FnMut(&[String]) -> Result<(), String>,
        take: &mut Take<'_>,
    ) -> Result<()> {
        let file = File::open(self.path).map_err(|error| Error::file(self.path, error))?;
        let allowance = Allowance::new(LONGEST);
        let decoded: Box<dyn Read> = match self.encoding {
            Encoding::Utf8 => Box::new(file),
            Encoding::Latin1 => Box::new(Latin1::new(BufReader::new(file))),
        };
        let bounded = Bounded::new(decoded, allowance.clone());
        let mut reader = BufReader::with_capacity(READ, bounded);
        pass_mark(&mut reader).map_err(|error| Error::file(self.path, error))?;
        let mut out = Out {
            path: self.path.to_owned(),
            allowance,
            number: 0,
            take,
        };
        match self.format {
            Format::Csv(options) => csv::each(options, reader, columns, &mut out),
            Format::Json(root) => json::each(root, reader, &mut out),
            Format::Xml(options) => xml::each(options, reader, &mut out),
        }
    }
}

/// Passes over a byte order mark.
pub(super) fn pass_mark(reader: &mut impl std::io::BufRead) -> std::io::Result<()> {
    if reader.fill_buf()?.starts_with(b"\xef\xbb\xbf") {
        reader.consume(3);
    }
    Ok(())
}

/// Where a format's reader puts its records.
struct Out<'a, 'b> {
    path: PathBuf,
    allowance: Allowance,
    number: u64,
    take: &'a mut Take<'b>,
}

impl Out<'_, '_> {
    /// Hands over a record; `false` when it is enough.
    fn put(&mut self, line: Option<u64>, fields: Result<Fields, String>) -> Result<bool> {
        self.allowance.renew();
        self.number += 1;
        (self.take)(Record {
            number: self.number,
            line,
            fields,
        })
    }

    /// The file is not what it should be.
    fn fault(&self, why: impl std::fmt::Display) -> Error {
        Error::file(&self.path, why)
    }
}

/// ISO 8859-1 read as UTF-8.
struct Latin1<R> {
    inner: R,
    /// The second byte of a character whose first is handed over.
    waiting: Option<u8>,
}

impl<R: Read> Latin1<R> {
    fn new(inner: R) -> Self {
        Self {
            inner,
            waiting: None,
        }
    }
}

impl<R: Read> Read for Latin1<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        if let Some(byte) = self.waiting.take() {
            into[0] = byte;
            return Ok(1);
        }
        // Each byte may become two.
        let mut bytes = vec![0; (into.len() / 2).clamp(1, READ)];
        let read = self.inner.read(&mut bytes)?;
        let mut at = 0;
        for byte in &bytes[..read] {
            let mut utf8 = [0; 2];
            for byte in char::from(*byte).encode_utf8(&mut utf8).bytes() {
                match into.get_mut(at) {
                    Some(place) => *place = byte,
                    None => self.waiting = Some(byte),
                }
                at += 1;
            }
        }
        Ok(at.min(into.len()))
    }
}

/// A value of a record: the field of that name, else what a path of names and numbers leads to
/// (`$.a.b`, `a.b[0].c`).
pub(super) fn find<'a>(fields: &'a Fields, source: &str) -> Option<&'a Value> {
    if let Some(value) = fields.get(source) {
        return Some(value);
    }
    let path = source.strip_prefix('$').unwrap_or(source);
    let mut steps = path.split(['.', '[']).filter(|step| !step.is_empty());
    let mut value = fields.get(steps.next()?.trim_end_matches(']'))?;
    for step in steps {
        let step = step.trim_end_matches(']');
        value = match value {
            Value::Object(map) => map.get(step.trim_matches(['\'', '"']))?,
            Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Line and fields of a record.
    type Seen = (Option<u64>, Result<Fields, String>);

    pub(super) fn read(format: &Format, encoding: Encoding, bytes: &[u8]) -> Result<Vec<Seen>> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data");
        std::fs::write(&path, bytes).expect("written");
        let input = Input {
            path: &path,
            format,
            encoding,
        };
        let mut all = Vec::new();
        input.each(&mut |_| Ok(()), &mut |record| {
            all.push((record.line, record.fields));
            Ok(true)
        })?;
        Ok(all)
    }

    /// The records of a text, all of which have fields.
    pub(super) fn fields(format: &Format, text: &str) -> Vec<Value> {
        let all = read(format, Encoding::Utf8, text.as_bytes()).expect("read");
        all.into_iter()
            .map(|(_, fields)| Value::Object(fields.expect("fields")))
            .collect()
    }

    #[test]
    fn values_are_found_by_name_or_path() {
        let record = json!({"a.b": 1, "a": {"b": 2, "c": [{"d": 3}]}});
        let record = record.as_object().expect("an object");
        for (source, value) in [
            ("a.b", json!(1)),
            ("$.a.b", json!(2)),
            ("a.c[0].d", json!(3)),
            ("$.a['b']", json!(2)),
        ] {
            assert_eq!(find(record, source), Some(&value), "{source}");
        }
        for source in ["", "$", "b", "a.c.x", "a.c[7]", "a.b.c"] {
            assert_eq!(find(record, source), None, "{source}");
        }
    }

    #[test]
    fn latin1_and_byte_order_marks_are_understood() {
        let format = Format::Csv(CsvOptions::default());
        let bytes = b"name\nM\xfcnchen\n";
        let rows = read(&format, Encoding::Latin1, bytes).expect("read");
        assert_eq!(rows[0].1.as_ref().expect("fields")["name"], "München");
        assert_eq!(fields(&format, "\u{feff}name\nx\n"), [json!({"name": "x"})]);
        let error = read(&format, Encoding::Utf8, bytes).expect_err("no UTF-8");
        assert!(error.to_string().contains("line 2"), "{error}");
        assert_eq!(Encoding::named("UTF_8"), Some(Encoding::Utf8));
        assert_eq!(Encoding::named("utf-16"), None);
    }

    #[test]
    fn a_record_without_end_is_refused_before_it_fills_the_memory() {
        let size = usize::try_from(LONGEST).expect("small") + (1 << 20);
        let endless = format!("a\n\"{}", "x".repeat(size));
        for (format, text) in [
            (Format::Csv(CsvOptions::default()), endless),
            (
                Format::Json(Vec::new()),
                format!("[{{\"a\": \"{}", "x".repeat(size)),
            ),
            (
                Format::Xml(XmlOptions::default()),
                format!("<r><record><a>{}", "x".repeat(size)),
            ),
        ] {
            let error = read(&format, Encoding::Utf8, text.as_bytes()).expect_err("too long");
            assert!(error.to_string().contains("longer than"), "{error}");
        }
    }
}
