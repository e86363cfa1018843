//! How a file is written, found from its beginning: kind, characters, and where its records are. The outcome is the
//! `format` of a descriptor.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::{Value, json};
use tg_document::kind::{self as content, HEAD, Kind, Refusal};
use tg_document::text::leniently;

use super::header::names_columns;
use crate::client::{Error, Result};
use crate::commands::structured::diagnose::kind;
use crate::commands::structured::records::{
    CsvOptions, Encoding, Format, Input, LONGEST, pass_mark,
};

/// Bytes that are looked at for kind, characters and elements.
const BEGINNING: u64 = 1 << 20;
/// Records that are looked at for a delimiter.
const RECORDS: u64 = 50;
/// Characters of a cell that are looked at.
const CELL: usize = 64;
/// Delimiters of columns, the more usual one first.
const DELIMITERS: [u8; 4] = *b",;\t|";
/// The quote of cells.
const QUOTE: u8 = b'"';
/// How deep in a JSON document an array of records is looked for.
const DEEP: usize = 3;
/// Different paths of elements that are counted.
const PATHS: usize = 10_000;
/// How deep elements are looked at: a path is as long as it is deep, and nobody keeps records deeper.
const NESTED: usize = 16;
/// Bytes of an element's name that are looked at.
const NAME: usize = 256;

/// The `format` of a descriptor that reads a file.
pub(super) fn layout(path: &Path) -> Result<Value> {
    let beginning = beginning(path)?;
    if beginning.starts_with(b"\xff\xfe") || beginning.starts_with(b"\xfe\xff") {
        return Err(Error::file(path, "is UTF-16; save it as UTF-8"));
    }
    if let Some(what) = no_table(&beginning) {
        return Err(Error::file(path, format!("is {what}; save it as CSV")));
    }
    let charset = charset(&beginning);
    let encoding = Encoding::named(&charset).unwrap_or(Encoding::Utf8);
    let first = beginning
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(&beginning);
    let first = first.iter().find(|byte| !byte.is_ascii_whitespace());
    let options = match (kind(path), first) {
        (_, None) => return Err(Error::file(path, "is empty")),
        (Some("xml"), _) | (None, Some(b'<')) => ("xml", xml(path, &beginning)?),
        (Some("json"), _) | (None, Some(b'{' | b'[')) => ("json", json(path, first)?),
        _ => ("csv", csv(path, encoding, &beginning)?),
    };
    Ok(json!({"type": options.0, "encoding": charset, "options": options.1}))
}

/// What a file is that has no records in text, by its first bytes and whatever it is called.
fn no_table(beginning: &[u8]) -> Option<&'static str> {
    let head = beginning.get(..HEAD).unwrap_or(beginning);
    match content::detect(head, "") {
        Err(Refusal::NotRead(what)) => Some(what),
        Ok(Kind::Pdf) => Some("a PDF"),
        Ok(Kind::Docx) => Some("a Word document"),
        _ => None,
    }
}

/// The charset, as a descriptor names it: UTF-8, else what the bytes suggest. UTF-8 with a fault in it stays UTF-8, so that
/// the fault is told and nothing is read as other characters.
fn charset(beginning: &[u8]) -> String {
    match std::str::from_utf8(beginning) {
        // A character may be cut where the beginning ends.
        Err(fault) if fault.error_len().is_some() => {}
        _ => return "utf-8".to_owned(),
    }
    let (_, guessed) = leniently(beginning, None);
    match guessed.to_ascii_lowercase() {
        // The bytes in which the two differ.
        plain
            if plain == "windows-1252"
                && !beginning.iter().any(|byte| (0x80..0xa0).contains(byte)) =>
        {
            "iso-8859-1".to_owned()
        }
        other => other,
    }
}

fn beginning(path: &Path) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(|error| Error::file(path, error))?;
    let mut bytes = Vec::new();
    let read = file.take(BEGINNING).read_to_end(&mut bytes);
    read.map_err(|error| Error::file(path, error))?;
    Ok(bytes)
}

/// A file read with one delimiter.
struct Tried {
    delimiter: u8,
    /// The quote of cells; `None`: they have none.
    quote: Option<u8>,
    /// A cell holds the end of a line, or a tab.
    joined: bool,
    /// Records with as many cells as the first, which has several.
    alike: usize,
    /// The first records.
    rows: Vec<Vec<String>>,
}

/// The delimiter by which most records have as many cells as the first one, and whether that one names columns.
fn csv(path: &Path, encoding: Encoding, beginning: &[u8]) -> Result<Value> {
    let told = told_delimiter(beginning);
    let skip_rows = u64::from(told.is_some());
    let mut best: Option<Tried> = None;
    let mut fault = None;
    for delimiter in told.map_or_else(|| DELIMITERS.to_vec(), |told| vec![told]) {
        let tried = match try_quotes(path, encoding, delimiter, skip_rows) {
            Ok(tried) => tried,
            Err(error) => {
                fault = fault.or(Some(error));
                continue;
            }
        };
        let width = |tried: &Tried| tried.rows.first().map_or(0, Vec::len);
        let better = |than: &Tried| (tried.alike, width(&tried)) > (than.alike, width(than));
        if width(&tried) > 0 && best.as_ref().is_none_or(better) {
            best = Some(tried);
        }
    }
    let Some(Tried {
        delimiter,
        quote,
        rows,
        ..
    }) = best
    else {
        return Err(fault.unwrap_or_else(|| Error::file(path, "is empty")));
    };
    let delimiter = match delimiter {
        b'\t' => "\\t".to_owned(),
        other => char::from(other).to_string(),
    };
    let has_header = rows
        .split_first()
        .is_some_and(|(head, rest)| names_columns(head, rest));
    let mut options = json!({"delimiter": delimiter, "has_header": has_header});
    if skip_rows > 0 {
        options["skip_rows"] = skip_rows.into();
    }
    if quote.is_none() {
        options["quote_char"] = "".into();
    }
    Ok(options)
}

/// Values between tabs have no quotes by their standard, and some writers quote them all the same. They have none where quotes would
/// join lines of which each is a record by itself.
fn try_quotes(path: &Path, encoding: Encoding, delimiter: u8, skip_rows: u64) -> Result<Tried> {
    let quoted = try_delimiter(path, encoding, (delimiter, Some(QUOTE)), skip_rows);
    if delimiter != b'\t' || quoted.as_ref().is_ok_and(|tried| !tried.joined) {
        return quoted;
    }
    match try_delimiter(path, encoding, (delimiter, None), skip_rows) {
        Ok(bare) if bare.alike > 0 && bare.alike == bare.rows.len() => Ok(bare),
        _ => quoted,
    }
}

fn try_delimiter(
    path: &Path,
    encoding: Encoding,
    (delimiter, quote): (u8, Option<u8>),
    skip_rows: u64,
) -> Result<Tried> {
    let format = Format::Csv(CsvOptions {
        delimiter,
        quote,
        skip_rows,
        has_header: false,
        ..CsvOptions::default()
    });
    let input = Input {
        path,
        format: &format,
        encoding,
    };
    let (mut alike, mut count, mut joined) = (0, 0, false);
    let mut rows: Vec<Vec<String>> = Vec::new();
    input.each(&mut |_| Ok(()), &mut |record| {
        count += 1;
        if let Ok(fields) = record.fields {
            let mut texts = fields.values().filter_map(Value::as_str);
            joined |= texts.any(|text| text.contains(['\n', '\t']));
            // Columns without a header are called field_1 and so on.
            let cell = |at: usize| {
                let cell = fields.get(&format!("field_{at}"))?.as_str()?;
                Some(cell.chars().take(CELL).collect())
            };
            let cells: Vec<String> = (1..).map_while(cell).collect();
            let width = rows.first().map_or(cells.len(), Vec::len);
            alike += usize::from(cells.len() == width && width > 1);
            rows.push(cells);
        }
        Ok(count < RECORDS)
    })?;
    Ok(Tried {
        delimiter,
        quote,
        joined,
        alike,
        rows,
    })
}

/// The delimiter that spreadsheets write into a line of its own before all others: `sep=;`.
fn told_delimiter(beginning: &[u8]) -> Option<u8> {
    let text = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning);
    let line = text.split(|byte| matches!(byte, b'\n' | b'\r')).next()?;
    match line.trim_ascii_end() {
        [s, e, p, b'=', delimiter] | [b'"', s, e, p, b'=', delimiter, b'"']
            if [*s, *e, *p].eq_ignore_ascii_case(b"sep") && delimiter.is_ascii_punctuation() =>
        {
            Some(*delimiter)
        }
        // A tab at the end of a line is easily lost with the blanks.
        [s, e, p, b'='] if [*s, *e, *p].eq_ignore_ascii_case(b"sep") && line.contains(&b'\t') => {
            Some(b'\t')
        }
        _ => None,
    }
}

/// Where records are: at the root of an array and of JSON lines, else the largest array of objects in a document.
fn json(path: &Path, first: Option<&u8>) -> Result<Value> {
    if first == Some(&b'[') {
        return Ok(json!({}));
    }
    let file = File::open(path).map_err(|error| Error::file(path, error))?;
    let mut reader = BufReader::new(file.take(LONGEST));
    pass_mark(&mut reader).map_err(|error| Error::file(path, error))?;
    let mut values = serde_json::Deserializer::from_reader(reader).into_iter::<Value>();
    let document = match values.next() {
        Some(Ok(value)) => value,
        Some(Err(error)) if error.is_eof() => {
            return Err(Error::file(
                path,
                "is one long JSON document: a descriptor (format.options.root_path) says where its records are",
            ));
        }
        Some(Err(error)) => return Err(Error::file(path, error)),
        None => return Err(Error::file(path, "is empty")),
    };
    if values.next().is_some() {
        return Ok(json!({}));
    }
    let mut found = None;
    arrays(&document, &mut Vec::new(), &mut found);
    Ok(match found {
        Some((_, path)) => json!({"root_path": format!("$.{path}")}),
        None => json!({}),
    })
}

fn arrays(value: &Value, at: &mut Vec<String>, found: &mut Option<(usize, String)>) {
    let Value::Object(fields) = value else {
        return;
    };
    for (key, value) in fields {
        if key.is_empty() || key.contains(['.', '[', ']', '*', '(', '?']) || at.len() >= DEEP {
            continue;
        }
        at.push(key.clone());
        match value {
            Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_object) => {
                if found.as_ref().is_none_or(|(most, _)| items.len() > *most) {
                    *found = Some((items.len(), at.join(".")));
                }
            }
            other => arrays(other, at, found),
        }
        at.pop();
    }
}

/// The path of records: of the elements that hold something, those least deep that come more than once.
fn xml(path: &Path, beginning: &[u8]) -> Result<Value> {
    let mut reader = Reader::from_reader(beginning);
    reader.config_mut().expand_empty_elements = true;
    let (mut depth, mut open) = (0_usize, Vec::<String>::new());
    // By depth and order: how often, and whether one has fields.
    let mut counts: BTreeMap<(usize, String), (u64, bool)> = BTreeMap::new();
    loop {
        match reader.read_event() {
            Ok(Event::Start(start)) => {
                depth += 1;
                if depth > NESTED {
                    continue;
                }
                if let Some(above) = counts.get_mut(&(open.len(), open.join("/"))) {
                    above.1 = true;
                }
                let name = start.local_name();
                let name = &name.as_ref()[..name.as_ref().len().min(NAME)];
                open.push(String::from_utf8_lossy(name).into_owned());
                if counts.len() < PATHS {
                    let count = counts.entry((open.len(), open.join("/"))).or_default();
                    count.0 += 1;
                    count.1 |= start.attributes().with_checks(false).next().is_some();
                }
            }
            Ok(Event::End(_)) => {
                depth = depth.saturating_sub(1);
                open.truncate(depth);
            }
            Ok(Event::Eof) => break,
            // What is cut at the end of the beginning is no fault; what is not XML is told by who reads the records.
            Err(_) => break,
            Ok(_) => {}
        }
    }
    let below = || {
        counts
            .iter()
            .filter(|((depth, _), (_, fields))| *depth > 1 && *fields)
    };
    let several = below().find(|(_, (count, _))| *count > 1);
    let Some(((_, record), _)) = several.or_else(|| below().next()) else {
        return Err(Error::file(
            path,
            "has no elements with fields; a descriptor (format.options.record_path) says which are records",
        ));
    };
    Ok(json!({"record_path": format!("/{record}")}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, bytes: &[u8]) -> Result<Value> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        layout(&path)
    }

    #[test]
    fn delimiters_headers_and_characters_are_found() {
        for (text, delimiter, header) in [
            (&b"id,name\n1,\"a;b;c\"\n2,\"d;e;f\"\n"[..], ",", true),
            (b"id;price\n1;2,5\n2;3,5\n", ";", true),
            (b"a\tb\n1\t2\n", "\\t", true),
            (b"1|x\n2|y\n", "|", false),
            (b"name\nAnn\nBo\n", ",", true),
            (b"a,a\n1,2\n", ",", true),
            (b"country,2022,2023\nPeru,10.5,20.25\n", ",", true),
            (b"id,name,city\n1,Ann,Lima,\n2,Bo,Oslo,\n", ",", true),
            (b",b\n0,1\n", ",", true),
            // Commas within numbers, tabs within quotes.
            (b"A;B;C\n1,1;2,2;3,3\n1,1;2,2;3,3\n", ";", true),
            (b"X\tY\tZ\n120,5\t50,3\t2,35\n", "\\t", true),
            (b"Name;Year\n\"\tDoe\";1971\n\"\tRoe\";1972\n", ";", true),
        ] {
            let format = of("x", text).expect("found");
            let wanted = json!({"type": "csv", "encoding": "utf-8",
                "options": {"delimiter": delimiter, "has_header": header}});
            assert_eq!(format, wanted, "{}", String::from_utf8_lossy(text));
        }
        assert_eq!(
            of("x.csv", b"a\nM\xfcnchen\n").expect("found")["encoding"],
            "iso-8859-1"
        );
        for (text, charset) in [
            ("preis;zeichen\n12;„€“ – und mehr\n", "windows-1252"),
            (
                "мост;город\nСтарый мост;над рекой стоит давно\n",
                "windows-1251",
            ),
        ] {
            let known = encoding_rs::Encoding::for_label(charset.as_bytes()).expect("known");
            let format = of("x.csv", &known.encode(text).0).expect("found");
            assert_eq!(format["encoding"], charset);
        }
        // A stray byte in UTF-8 does not make other characters of all the rest.
        let faulty = [
            "name\n".as_bytes(),
            "größe\n".repeat(50).as_bytes(),
            b"\xff\n",
        ]
        .concat();
        let told = of("x.csv", &faulty).expect("found");
        assert_eq!(told["encoding"], "utf-8");
        assert!(of("x.csv", b"\xff\xfea\0").is_err());
        assert!(of("x.csv", b"\xef\xbb\xbf \n").is_err());
    }

    #[test]
    fn a_spreadsheet_says_what_it_is_whatever_it_is_called() {
        for (bytes, what) in [
            (&b"PK\x03\x04........\0xl/workbook.xml"[..], "a spreadsheet"),
            (
                b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
                "an Office file from before 2007",
            ),
            (b"%PDF-1.7\n", "a PDF"),
        ] {
            let told = of("x.csv", bytes).expect_err("refused").to_string();
            assert!(
                told.contains(&format!("is {what}; save it as CSV")),
                "{told}"
            );
        }
    }

    #[test]
    fn values_between_tabs_have_quotes_only_where_these_join_no_records() {
        for (text, quote) in [
            (
                "id\tnote\n1\t\"open\n2\tb\n3\tsaid \"hi\"\n4\tc\n",
                Some(""),
            ),
            ("id\tnote\n1\ta\n2\t\"never ends\n", Some("")),
            ("id\tnote\n1\t5'9\" tall\n2\tb\n", None),
            ("id\tnote\n1\t\"a \"\"b\"\"\"\n2\tb\n", None),
            ("id\tnote\n1\t\"two\nlines\"\n2\tb\n", None),
        ] {
            let format = of("x.tsv", text.as_bytes()).expect("found");
            assert_eq!(format["options"]["delimiter"], "\\t", "{text}");
            assert_eq!(format["options"]["quote_char"].as_str(), quote, "{text}");
        }
    }

    #[test]
    fn a_line_that_tells_the_delimiter_is_no_record() {
        for (text, delimiter) in [
            ("sep=;\r\na,b;c\r\n1,2;3\r\n", ";"),
            ("\u{feff}SEP=|\na,b|c\n1,2|3\n", "|"),
            ("sep=\t\na,b\tc\n1,2\t3\n", "\\t"),
        ] {
            let format = of("x.csv", text.as_bytes()).expect("found");
            let wanted = json!({"delimiter": delimiter, "has_header": true, "skip_rows": 1});
            assert_eq!(format["options"], wanted, "{text}");
        }
        let format = of("x.csv", b"sep=x y,b\n1,2\n").expect("found");
        assert_eq!(format["options"]["skip_rows"], Value::Null);
    }

    #[test]
    fn records_of_json_are_found() {
        for (text, path) in [
            (r#"[{"a": 1}]"#, Value::Null),
            ("{\"a\": [{\"b\": 1}]}\n{\"a\": []}\n", Value::Null),
            (r#"{"a": 1}"#, Value::Null),
            (
                r#"{"n": [1, 2], "data": {"items": [{"a": 1}]}}"#,
                json!("$.data.items"),
            ),
            (r#"{"few": [{}], "many": [{}, {}]}"#, json!("$.many")),
        ] {
            let format = of("x.json", text.as_bytes()).expect("found");
            assert_eq!(format["options"]["root_path"], path, "{text}");
        }
        assert!(of("x.jsonl", b"{\"a\"").is_err());
    }

    #[test]
    fn records_of_xml_are_the_elements_that_repeat() {
        for (text, path) in [
            ("<shop><lamp id='1'/><lamp id='2'/></shop>", "/shop/lamp"),
            (
                "<d><head><x>1</x></head><is><i><n>1</n></i><i><n>2</n></i></is></d>",
                "/d/is/i",
            ),
            ("<shop><lamp><n>1</n></lamp></shop>", "/shop/lamp"),
        ] {
            let format = of("x", text.as_bytes()).expect("found");
            assert_eq!(format["options"]["record_path"], path, "{text}");
        }
        assert!(of("x.xml", b"<a>text</a>").is_err());
    }
}
