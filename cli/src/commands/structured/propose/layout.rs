//! How a file is written, found from its beginning: kind, characters, and where its records are. The outcome is the
//! `format` of a descriptor.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::{Value, json};

use super::column::Type;
use crate::client::{Error, Result};
use crate::commands::structured::diagnose::kind;
use crate::commands::structured::records::{
    CsvOptions, Encoding, Format, Input, LONGEST, pass_mark,
};

/// Bytes that are looked at for kind, characters and elements.
const BEGINNING: u64 = 1 << 20;
/// Records that are looked at for a delimiter.
const RECORDS: u64 = 50;
/// Delimiters of columns, the more usual one first.
const DELIMITERS: [u8; 4] = *b",;\t|";
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
    let encoding = match std::str::from_utf8(&beginning) {
        // A character may be cut where the beginning ends.
        Err(fault) if fault.error_len().is_some() => Encoding::Latin1,
        _ => Encoding::Utf8,
    };
    let first = beginning
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(&beginning);
    let first = first.iter().find(|byte| !byte.is_ascii_whitespace());
    let options = match (kind(path), first) {
        (_, None) => return Err(Error::file(path, "is empty")),
        (Some("xml"), _) | (None, Some(b'<')) => ("xml", xml(path, &beginning)?),
        (Some("json"), _) | (None, Some(b'{' | b'[')) => ("json", json(path, first)?),
        _ => ("csv", csv(path, encoding)?),
    };
    let encoding = match encoding {
        Encoding::Utf8 => "utf-8",
        Encoding::Latin1 => "iso-8859-1",
    };
    Ok(json!({"type": options.0, "encoding": encoding, "options": options.1}))
}

fn beginning(path: &Path) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(|error| Error::file(path, error))?;
    let mut bytes = Vec::new();
    let read = file.take(BEGINNING).read_to_end(&mut bytes);
    read.map_err(|error| Error::file(path, error))?;
    Ok(bytes)
}

/// The delimiter by which most records have as many cells as the first one, and whether that one names columns.
fn csv(path: &Path, encoding: Encoding) -> Result<Value> {
    let mut best: Option<(usize, Vec<String>, u8)> = None;
    let mut fault = None;
    for delimiter in DELIMITERS {
        let format = Format::Csv(CsvOptions {
            delimiter,
            has_header: false,
            ..CsvOptions::default()
        });
        let input = Input {
            path,
            format: &format,
            encoding,
        };
        let (mut head, mut alike, mut count) = (Vec::new(), 0, 0);
        let outcome = input.each(&mut |_| Ok(()), &mut |record| {
            count += 1;
            if let Ok(fields) = record.fields {
                // Columns without a header are called field_1 and so on.
                let cell = |at: usize| {
                    fields
                        .get(&format!("field_{at}"))?
                        .as_str()
                        .map(str::to_owned)
                };
                let cells: Vec<String> = (1..).map_while(cell).collect();
                if head.is_empty() {
                    head = cells;
                    alike = usize::from(head.len() > 1);
                } else if cells.len() == head.len() && head.len() > 1 {
                    alike += 1;
                }
            }
            Ok(count < RECORDS)
        });
        if let Err(error) = outcome {
            fault = fault.or(Some(error));
            continue;
        }
        let better =
            |(most, than, _): &(usize, Vec<String>, u8)| (alike, head.len()) > (*most, than.len());
        if !head.is_empty() && best.as_ref().is_none_or(better) {
            best = Some((alike, head, delimiter));
        }
    }
    let Some((_, head, delimiter)) = best else {
        return Err(fault.unwrap_or_else(|| Error::file(path, "is empty")));
    };
    let delimiter = match delimiter {
        b'\t' => "\\t".to_owned(),
        other => char::from(other).to_string(),
    };
    Ok(json!({"delimiter": delimiter, "has_header": names_columns(&head)}))
}

/// Whether cells are names: texts that differ.
fn names_columns(head: &[String]) -> bool {
    let text = |cell: &String| Type::of(cell.trim()) == Type::Text;
    let once = |cell: &String| head.iter().filter(|other| *other == cell).count() == 1;
    head.iter().all(|cell| text(cell) && once(cell))
        && head.iter().any(|cell| !cell.trim().is_empty())
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
            (b"a,a\n1,2\n", ",", false),
            (b",b\n0,1\n", ",", true),
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
        assert!(of("x.csv", b"\xff\xfea\0").is_err());
        assert!(of("x.csv", b"\xef\xbb\xbf \n").is_err());
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
