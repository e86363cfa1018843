//! Records of a file, one after the other. A file is never held whole, and no record may be longer than
//! [`LONGEST`] bytes.

mod charset;
mod csv;
#[cfg(test)]
mod fuzz;
mod json;
mod lines;
mod xml;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tg_schemas::limits;

pub(super) use charset::Encoding;
pub(super) use csv::CsvOptions;
pub(super) use xml::{RecordPath, XmlOptions};

use self::charset::Decoded;
use self::lines::Returns;
use crate::client::{Error, Result};
pub(super) use crate::files::pass_mark;
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
            Encoding::Other(charset) => Box::new(Decoded::new(file, charset)),
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
            Format::Csv(options) => match lines::ends_with_returns(&mut reader) {
                true => csv::each(options, Returns::new(reader), columns, &mut out),
                false => csv::each(options, reader, columns, &mut out),
            },
            Format::Json(root) => json::each(root, reader, &mut out),
            Format::Xml(options) => xml::each(options, reader, &mut out),
        }
    }
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
        let latin = Encoding::named("latin-1").expect("known");
        let rows = read(&format, latin, bytes).expect("read");
        assert_eq!(rows[0].1.as_ref().expect("fields")["name"], "München");
        assert_eq!(fields(&format, "\u{feff}name\nx\n"), [json!({"name": "x"})]);
        let quoted = "\u{feff}\"Head, 1\",\"Head 2\"\na,b\n";
        assert_eq!(
            fields(&format, quoted),
            [json!({"Head, 1": "a", "Head 2": "b"})]
        );
        let error = read(&format, Encoding::Utf8, bytes).expect_err("no UTF-8");
        assert!(error.to_string().contains("line 2"), "{error}");
        assert_eq!(Encoding::named("UTF_8"), Some(Encoding::Utf8));
        assert_eq!(Encoding::named("utf-16"), None);
    }

    #[test]
    fn charsets_of_one_platform_are_read() {
        let format = Format::Csv(CsvOptions::default());
        for (charset, text) in [
            ("cp1252", "preis\n„12 €“ – ab März\n"),
            ("iso-8859-1", "preis\n„12 €“ – ab März\n"),
            ("cp1251", "цена\nдва рубля\n"),
            ("shift_jis", "値段\n十二円\n"),
        ] {
            let encoding = Encoding::named(charset).expect("known");
            let Encoding::Other(known) = encoding else {
                panic!("{charset} is not UTF-8");
            };
            let (bytes, _, lossy) = known.encode(text);
            assert!(!lossy, "{charset}");
            let rows = read(&format, encoding, &bytes).expect("read");
            let (name, value) = text.trim_end().split_once('\n').expect("two lines");
            assert_eq!(
                rows[0].1.as_ref().expect("fields")[name],
                value,
                "{charset}"
            );
        }
        let broken = read(
            &format,
            Encoding::named("shift_jis").expect("known"),
            b"a\n\x81",
        );
        assert!(
            broken
                .expect_err("cut")
                .to_string()
                .contains("not text in Shift_JIS")
        );
    }

    #[test]
    fn lines_may_end_with_carriage_returns_alone() {
        let format = Format::Csv(CsvOptions::default());
        let text = "id,name\r1,\"a\rb\"\r2,c\r";
        assert_eq!(
            fields(&format, text),
            [
                json!({"id": "1", "name": "a\nb"}),
                json!({"id": "2", "name": "c"})
            ]
        );
        // Where there are line feeds, too, a lone one belongs to its cell.
        let text = "id,name\r\n1,a\rb\r\n";
        assert_eq!(fields(&format, text), [json!({"id": "1", "name": "a\rb"})]);
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
