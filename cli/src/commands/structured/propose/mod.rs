//! A schema and a descriptor for a file that fits no schema yet: names and types from its header and first records.
//! What comes of it is a proposal, which the user sees before anything is made.

mod column;
#[cfg(test)]
mod fuzz;
mod header;
mod layout;
mod names;

use std::path::Path;

use serde_json::{Map, Value, json};

use self::column::{Column, NO_VALUE, Type};
use super::descriptor::Descriptor;
use super::records::{Fields, Input, Record};
use super::transform::cell;
use crate::client::{Error, Result};

/// Records that are looked at.
const RECORDS: u64 = 10_000;
/// Most fields of a record; a schema has no more.
const COLUMNS: usize = 512;
/// Objects in objects of JSON whose fields become fields of their own.
const NESTED: usize = 4;
/// Most fields that rows are looked up by.
const INDEXED: usize = 8;
/// Names of columns that say that they tell records apart.
const KEYS: [&str; 9] = [
    "id", "uuid", "key", "code", "number", "nr", "no", "sku", "isbn",
];

/// What a file may become.
#[derive(Debug)]
pub(super) struct Proposal {
    /// A schema, as the configuration has it.
    pub(super) schema: Value,
    /// A descriptor, without the name of the schema.
    pub(super) descriptor: Value,
    /// Field, type, where it comes from, and a value.
    pub(super) fields: Vec<[String; 4]>,
    /// Records that were looked at.
    pub(super) records: u64,
    /// There are more of them.
    pub(super) more: bool,
}

/// A name for a schema, from the name of the file.
pub(super) fn usual_name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    match names::plain(&stem) {
        name if name.is_empty() => "records".to_owned(),
        name => name,
    }
}

/// Whether a schema may be called so.
///
/// # Errors
/// [`Error::Usage`] says what it may be called.
pub(super) fn check_name(name: &str) -> Result<()> {
    match names::is_plain(name) {
        true => Ok(()),
        false => Err(Error::Usage(
            "--make-schema: must be a letter and up to 63 letters, digits or _".to_owned(),
        )),
    }
}

/// Reads the first records of a file. It blocks.
///
/// # Errors
/// [`Error::File`] where it cannot be read, or no record has fields.
pub(super) fn propose(path: &Path) -> Result<Proposal> {
    let format = layout::layout(path)?;
    let empty = json!({"format": format, "mappings": [{"source": "x"}]});
    let descriptor = Descriptor::of(&empty).map_err(|why| Error::file(path, why))?;
    let input = Input {
        path,
        format: &descriptor.format,
        encoding: descriptor.encoding,
    };
    let mut table = Table::default();
    let header = std::cell::RefCell::new(Vec::new());
    let mut names = |names: &[String]| {
        names.clone_into(&mut header.borrow_mut());
        Ok(())
    };
    input.each(&mut names, &mut |record| {
        if table.records == 0 {
            table.named(&header.borrow());
        }
        Ok(table.take(record))
    })?;
    if !table.more {
        // What writers put behind the last delimiter is no column.
        table
            .columns
            .retain(|column| !column.unnamed || column.is_filled());
    }
    if table.columns.is_empty() {
        return Err(Error::file(path, "has no record with fields"));
    }
    Ok(table.proposal(path, format))
}

/// The columns of what was read so far.
#[derive(Debug, Default)]
struct Table {
    columns: Vec<Column>,
    /// Where a column stands, by its source.
    at: std::collections::HashMap<String, usize>,
    records: u64,
    more: bool,
}

impl Table {
    /// Columns in the order of a header.
    fn named(&mut self, header: &[String]) {
        for (at, name) in header.iter().enumerate() {
            if let Some(column) = self.column(name.clone(), name.clone()) {
                self.columns[column].title = name.clone();
                self.columns[column].unnamed = *name == format!("field_{}", at + 1);
            }
        }
    }

    fn column(&mut self, key: String, source: String) -> Option<usize> {
        if let Some(at) = self.at.get(&key) {
            return Some(*at);
        }
        if self.columns.len() == COLUMNS {
            return None;
        }
        let title = source.strip_prefix("$.").unwrap_or(&source).to_owned();
        self.columns.push(Column::new(source, title));
        self.at.insert(key, self.columns.len() - 1);
        Some(self.columns.len() - 1)
    }

    /// Takes a record; `false` when it is enough.
    fn take(&mut self, record: Record) -> bool {
        if self.records == RECORDS {
            self.more = true;
            return false;
        }
        // What is no record is told when the file is loaded.
        if let Ok(fields) = record.fields {
            self.records += 1;
            self.fields(&fields, "", 0);
        }
        true
    }

    fn fields(&mut self, fields: &Fields, above: &str, depth: usize) {
        for (name, value) in fields {
            // Of an attribute the reader of XML makes both.
            if name
                .strip_prefix('@')
                .is_some_and(|bare| fields.contains_key(bare))
            {
                continue;
            }
            let path = format!("{above}{name}");
            let plain = !name.is_empty() && !name.contains(['.', '[', ']', '\'', '"', '$']);
            if let Value::Object(inner) = value
                && plain
                && depth < NESTED
                && !inner.is_empty()
            {
                self.fields(inner, &format!("{path}."), depth + 1);
                continue;
            }
            if depth > 0 && !plain {
                // No path leads there.
                continue;
            }
            let source = match depth {
                0 => path.clone(),
                _ => format!("$.{path}"),
            };
            if name.is_empty() && !self.at.contains_key(&path) {
                continue;
            }
            let Some(at) = self.column(path, source) else {
                return;
            };
            if let Some(text) = cell(Some(value)) {
                self.columns[at].take(&text);
            }
        }
    }

    fn proposal(&self, path: &Path, format: Value) -> Proposal {
        let mut given = names::Fields::default();
        let names: Vec<String> = (1..)
            .zip(&self.columns)
            .map(|(place, column)| given.give(&column.title, place))
            .collect();
        let key = self.key(&names);
        let mut indexed = 0;
        let (mut fields, mut mappings, mut shown) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (column, name)) in self.columns.iter().zip(&names).enumerate() {
            let kind = column.kind();
            let mut field = Map::new();
            field.insert("name".to_owned(), json!(name));
            field.insert("type".to_owned(), json!(kind.name()));
            if key == Some(at) {
                field.insert("primary_key".to_owned(), json!(true));
            } else if indexed < INDEXED && kind != Type::Float && column.is_short() {
                field.insert("indexed".to_owned(), json!(true));
                indexed += 1;
            }
            if column.title != *name {
                field.insert("description".to_owned(), json!(column.title));
            }
            fields.push(Value::Object(field));
            let mut mapping = json!({"source_field": column.source, "target_field": name});
            if kind != Type::Text {
                mapping["transforms"] = match column.has_no_value {
                    true => json!([{"type": "trim"}, {"type": "regex_replace",
                        "pattern": format!("^({})$", NO_VALUE.join("|")), "replacement": ""}]),
                    false => json!([{"type": "trim"}]),
                };
            }
            mappings.push(mapping);
            let key = if key == Some(at) { ", the key" } else { "" };
            shown.push([
                name.clone(),
                format!("{}{key}", kind.name()),
                column.source.clone(),
                column.example.clone(),
            ]);
        }
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        Proposal {
            schema: json!({"description": format!("Records of {file}"), "fields": fields}),
            descriptor: json!({"format": format, "mappings": mappings, "output": {}}),
            fields: shown,
            records: self.records,
            more: self.more,
        }
    }

    /// The column that tells records apart: one that is called so, else the first one. None while there are records that
    /// were not seen: one of the same key takes the place of another.
    fn key(&self, names: &[String]) -> Option<usize> {
        let apart = |at: &usize| !self.more && self.columns[*at].tells_apart(self.records);
        let called = |key: &str| names.iter().position(|name| name == key);
        let by_name = KEYS.iter().filter_map(|key| called(key)).find(apart);
        let by_end = || {
            let mut ends = (0..names.len()).filter(|at| names[*at].ends_with("_id"));
            ends.find(apart)
        };
        let first = || Some(0).filter(apart);
        by_name.or_else(by_end).or_else(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, text: &str) -> Proposal {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        propose(&path).expect("proposed")
    }

    fn types(proposal: &Proposal) -> Vec<(&str, &str)> {
        let fields = proposal.fields.iter();
        fields
            .map(|[name, kind, ..]| (name.as_str(), kind.as_str()))
            .collect()
    }

    #[test]
    fn a_table_is_proposed_with_types_and_a_key() {
        let text = "City Name;Opened;Height (m);Lit;Code\nBrackwater;1999-01-01;12.5;yes;7\nUmber;NA;3;no;9\n";
        let proposal = of("cities.csv", text);
        let wanted = [
            ("city_name", "string"),
            ("opened", "date"),
            ("height_m", "float"),
            ("lit", "boolean"),
            ("code", "integer, the key"),
        ];
        assert_eq!(types(&proposal), wanted);
        assert_eq!((proposal.records, proposal.more), (2, false));
        assert_eq!(proposal.schema["fields"][0]["description"], "City Name");
        let mapping = &proposal.descriptor["mappings"][1];
        assert_eq!(mapping["transforms"][1]["type"], "regex_replace");
        Descriptor::of(&proposal.descriptor).expect("one that is understood");
        tg_schemas::table::Table::read("cities", &proposal.schema.to_string()).expect("a schema");
    }

    #[test]
    fn columns_without_a_name_of_their_own_are_proposed_where_they_hold_something() {
        let proposal = of("x.csv", "id,note,note,,\n1,a,b,c,\n2,d,e,,\n");
        let sources: Vec<&str> = proposal.fields.iter().map(|field| &*field[2]).collect();
        assert_eq!(sources, ["id", "note", "note_2", "field_4"]);
        assert_eq!(proposal.descriptor["format"]["options"]["has_header"], true);
        let proposal = of("x.csv", "id,name,lat,lon,\n1,a,0,0\n2,b,1,1\n");
        let names: Vec<&str> = types(&proposal).iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["id", "name", "lat", "lon"]);
        let proposal = of(
            "x.csv",
            "country,2022,2023\nPeru,10.5,20.25\nChad,5.75,6.5\n",
        );
        let wanted = [
            ("country", "string, the key"),
            ("field_2022", "float"),
            ("field_2023", "float"),
        ];
        assert_eq!(types(&proposal), wanted);
    }

    #[test]
    fn nested_records_and_elements_become_fields() {
        let proposal = of(
            "x.jsonl",
            "{\"a\": {\"b\": 1, \"c\": [1]}, \"n\": \"x\"}\n{\"a\": {\"b\": 1}}\n",
        );
        let sources: Vec<&str> = proposal
            .fields
            .iter()
            .map(|field| field[2].as_str())
            .collect();
        assert_eq!(sources, ["$.a.b", "$.a.c", "n"]);
        assert_eq!(types(&proposal)[0], ("a_b", "integer"));
        let proposal = of(
            "x.xml",
            "<s><l id='1'><by>Ann</by></l><l id='2'><by>Bo</by></l></s>",
        );
        assert_eq!(
            types(&proposal),
            [("id", "integer, the key"), ("by", "string")]
        );
    }

    #[test]
    fn what_may_come_twice_later_is_no_key() {
        let mut text = "n\n".to_owned();
        for number in 0..=RECORDS {
            text += &format!("{number}\n");
        }
        // Also not where it is called like one.
        for name in ["n", "code", "lamp_id"] {
            let proposal = of("x.csv", &text.replacen('n', name, 1));
            assert_eq!(types(&proposal), [(name, "integer")]);
            assert!(proposal.more, "{name}");
        }
        let proposal = of("x.csv", "Ann,1\nBo,2\n");
        assert_eq!(
            types(&proposal),
            [("field_1", "string, the key"), ("field_2", "integer")]
        );
        assert_eq!(usual_name(Path::new("/x/My cities.csv")), "my_cities");
        assert!(check_name("a-b").is_err());
    }
}
