//! Rows from the records of a file: read, changed and checked on a thread of their own, handed over in batches.
//!
//! A record that does not fit is refused by itself, reported with its place, and counted; too many of them end the
//! load. What was handed over before stands.

use std::cell::RefCell;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use tg_schemas::table::Table;
use tokio::sync::mpsc;

use super::descriptor::{Descriptor, Mapping, OnTransform, OnValidation};
use super::records::{Fields, Format, Input, Record, find};
use super::transform::{Cell, cell};
use super::validate::fits;
use crate::client::{Error, Result};

/// Bytes of values after which a batch is full, however few rows it has.
const BATCH_BYTES: usize = 1 << 20;

/// What is made of a file.
pub(super) struct Plan {
    pub(super) input: PathBuf,
    pub(super) descriptor: Descriptor,
    /// The schema that rows must fit, if it is known.
    pub(super) table: Option<Table>,
    /// Rows of a batch.
    pub(super) batch: usize,
    /// Records that are looked at.
    pub(super) limit: u64,
    /// Records that may be refused.
    pub(super) max_errors: u64,
    /// Where refused records go.
    pub(super) error_file: Option<PathBuf>,
}

/// What happened on the way.
#[derive(Debug)]
pub(super) enum Step {
    /// Rows, in the form of the import.
    Batch(Vec<Value>),
    /// A record with something wrong: its place and why.
    Wrong(String),
}

/// What became of the records.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) records: u64,
    pub(super) rows: u64,
    /// Records that are no rows.
    pub(super) refused: u64,
    /// Rows with something wrong that the descriptor lets pass.
    pub(super) flawed: u64,
}

/// Why a record is no row.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    Skip(String),
    /// The descriptor wants the load to end.
    Fail(String),
}

impl Plan {
    /// Reads the file to its end, or until nobody takes its rows any more.
    pub(super) fn run(&self, to: &mpsc::Sender<Step>) -> Result<Counts> {
        let input = Input {
            path: &self.input,
            format: &self.descriptor.format,
            encoding: self.descriptor.encoding,
        };
        let mappings = RefCell::new(self.descriptor.mappings.clone());
        let mut columns = |names: &[String]| self.columns(names, &mut mappings.borrow_mut());
        let mut work = Work {
            plan: self,
            to,
            counts: Counts::default(),
            batch: Vec::new(),
            bytes: 0,
            refused: Refused {
                path: self.error_file.as_deref(),
                file: None,
            },
        };
        let mut take = |record: Record| work.take(record, &mappings.borrow());
        input.each(&mut columns, &mut take)?;
        work.flush();
        work.refused.end()?;
        Ok(work.counts)
    }

    /// Finds the columns that the descriptor means, by name or number.
    fn columns(&self, names: &[String], mappings: &mut [Mapping]) -> Result<(), String> {
        let header = matches!(&self.descriptor.format, Format::Csv(csv) if csv.has_header);
        for (at, mapping) in mappings.iter_mut().enumerate() {
            let source = &mapping.source;
            if names.contains(source) {
                continue;
            }
            let number = source
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'));
            let number = number.or_else(|| (!header).then_some(source.as_str()));
            let column = number
                .and_then(|number| number.parse::<usize>().ok())
                .and_then(|number| names.get(number));
            mapping.source = column.cloned().ok_or_else(|| {
                format!(
                    "has no column '{source}' (mappings[{at}] of the descriptor); it has {}",
                    names.join(", ")
                )
            })?;
        }
        Ok(())
    }

    /// The row of a record, and what is wrong with it all the same.
    fn row(
        &self,
        fields: &Fields,
        mappings: &[Mapping],
    ) -> Result<(Map<String, Value>, Vec<String>), Refusal> {
        let mut row = Map::new();
        let mut flaws = Vec::new();
        for mapping in mappings {
            let mut value = cell(find(fields, &mapping.source));
            let named = |why: String| format!("{}: {why}", mapping.target);
            if let Err(why) = change(&mut value, mapping, fields).map_err(named) {
                match self.descriptor.on_transform_error {
                    OnTransform::Skip => return Err(Refusal::Skip(why)),
                    OnTransform::Fail => return Err(Refusal::Fail(why)),
                    OnTransform::Default => {
                        flaws.push(why);
                        value = None;
                    }
                }
            }
            for check in &mapping.checks {
                if let Err(why) = check.run(&value).map_err(named) {
                    match self.descriptor.on_validation_error {
                        OnValidation::Skip => return Err(Refusal::Skip(why)),
                        OnValidation::Fail => return Err(Refusal::Fail(why)),
                        OnValidation::Log => flaws.push(why),
                    }
                }
            }
            let table = self.table.iter().flat_map(|table| &table.fields);
            for field in table.filter(|field| field.name == mapping.target) {
                // The store would refuse it, whatever the descriptor lets pass.
                fits(field, &value).map_err(|why| Refusal::Skip(named(why)))?;
            }
            if let Some(text) = value {
                row.insert(mapping.target.clone(), text.into());
            }
        }
        match row.is_empty() {
            true => Err(Refusal::Skip("has none of the wanted fields".to_owned())),
            false => Ok((row, flaws)),
        }
    }
}

fn change(value: &mut Cell, mapping: &Mapping, fields: &Fields) -> Result<(), String> {
    for transform in &mapping.transforms {
        *value = transform.apply(value.take(), fields)?;
    }
    Ok(())
}

/// A load under way.
struct Work<'a> {
    plan: &'a Plan,
    to: &'a mpsc::Sender<Step>,
    counts: Counts,
    batch: Vec<Value>,
    bytes: usize,
    refused: Refused<'a>,
}

impl Work<'_> {
    /// Takes a record; `false` when it is enough.
    fn take(&mut self, record: Record, mappings: &[Mapping]) -> Result<bool> {
        self.counts.records += 1;
        let place = place(&record);
        let row = match &record.fields {
            Ok(fields) => self.plan.row(fields, mappings),
            Err(why) => Err(Refusal::Skip(why.clone())),
        };
        let goes_on = match row {
            Ok((row, flaws)) => {
                self.counts.flawed += u64::from(!flaws.is_empty());
                let told = flaws.iter().all(|why| self.tell(&place, why));
                told && self.put(row)
            }
            Err(Refusal::Skip(why)) => {
                self.counts.refused += 1;
                self.refused.write(&record, &why)?;
                if self.counts.refused > self.plan.max_errors {
                    self.flush();
                    let why = format!(
                        "{place}: {why}; that is more than the {} records that may be refused",
                        self.plan.max_errors
                    );
                    return Err(Error::file(&self.plan.input, why));
                }
                self.tell(&place, &why)
            }
            Err(Refusal::Fail(why)) => {
                self.flush();
                return Err(Error::file(&self.plan.input, format!("{place}: {why}")));
            }
        };
        Ok(goes_on && self.counts.records < self.plan.limit)
    }

    fn put(&mut self, row: Map<String, Value>) -> bool {
        let text = |(key, value): (&String, &Value)| key.len() + value.as_str().map_or(0, str::len);
        self.bytes += row.iter().map(text).sum::<usize>();
        self.batch.push(Value::Object(row));
        self.counts.rows += 1;
        if self.batch.len() < self.plan.batch && self.bytes < BATCH_BYTES {
            return true;
        }
        self.flush()
    }

    fn flush(&mut self) -> bool {
        self.bytes = 0;
        let batch = std::mem::take(&mut self.batch);
        batch.is_empty() || self.to.blocking_send(Step::Batch(batch)).is_ok()
    }

    fn tell(&self, place: &str, why: &str) -> bool {
        let told = Step::Wrong(format!("{place}: {why}"));
        self.to.blocking_send(told).is_ok()
    }
}

fn place(record: &Record) -> String {
    match record.line {
        Some(line) => format!("record {} (line {line})", record.number),
        None => format!("record {}", record.number),
    }
}

/// The file of refused records, made when there is a first one.
struct Refused<'a> {
    path: Option<&'a Path>,
    file: Option<BufWriter<File>>,
}

impl Refused<'_> {
    fn write(&mut self, record: &Record, why: &str) -> Result<()> {
        let Some(path) = self.path else {
            return Ok(());
        };
        let failed = |error: std::io::Error| Error::file(path, error);
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let made = File::create(path).map_err(failed)?;
                self.file.insert(BufWriter::new(made))
            }
        };
        let line = json!({
            "record": record.number, "line": record.line, "error": why,
            "fields": record.fields.as_ref().ok(),
        });
        writeln!(file, "{line}").map_err(failed)
    }

    fn end(&mut self) -> Result<()> {
        match (&mut self.file, self.path) {
            (Some(file), Some(path)) => file.flush().map_err(|error| Error::file(path, error)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "id,name,age\n1, ann ,30\n2,,x\n3,bob,200\n4,cy,\n";

    fn plan(folder: &Path, descriptor: Value) -> Plan {
        let input = folder.join("people.csv");
        std::fs::write(&input, CSV).expect("written");
        Plan {
            input,
            descriptor: Descriptor::of(&descriptor).expect("a descriptor"),
            table: None,
            batch: 2,
            limit: u64::MAX,
            max_errors: 10,
            error_file: None,
        }
    }

    fn people(errors: Value) -> Value {
        json!({
            "mappings": [
                {"source_field": "id"},
                {"source_field": "name", "transforms": [{"type": "trim"}, {"type": "upper"}]},
                {"source_field": "[2]", "target_field": "years", "transforms": [{"type": "to_int"}],
                 "validation": [{"type": "range", "max": 150}]},
            ],
            "output": {"schema_name": "people", "error_handling": errors},
        })
    }

    /// Rows, what is wrong, and how it ended.
    fn run(plan: &Plan) -> (Vec<Value>, Vec<String>, Result<Counts>) {
        let (to, mut from) = mpsc::channel(100);
        let counts = plan.run(&to);
        drop(to);
        let (mut rows, mut wrong) = (Vec::new(), Vec::new());
        while let Ok(step) = from.try_recv() {
            match step {
                Step::Batch(batch) => {
                    assert!(batch.len() <= plan.batch);
                    rows.extend(batch);
                }
                Step::Wrong(why) => wrong.push(why),
            }
        }
        (rows, wrong, counts)
    }

    #[test]
    fn records_become_rows_and_what_does_not_fit_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut plan = plan(folder.path(), people(json!({})));
        let kept = folder.path().join("errors.jsonl");
        plan.error_file = Some(kept.clone());
        let (rows, wrong, counts) = run(&plan);
        assert_eq!(
            rows,
            [
                json!({"id": "1", "name": "ANN", "years": "30"}),
                json!({"id": "4", "name": "CY"}),
            ]
        );
        assert_eq!(
            wrong,
            [
                "record 2 (line 3): years: 'x' is not a whole number",
                "record 3 (line 4): years: '200' is more than 150"
            ]
        );
        let counts = counts.expect("ended");
        assert_eq!((counts.records, counts.rows, counts.refused), (4, 2, 2));
        let kept = std::fs::read_to_string(kept).expect("written");
        let first: Value = serde_json::from_str(kept.lines().next().expect("one")).expect("JSON");
        assert_eq!(
            (&first["record"], &first["fields"]["age"]),
            (&json!(2), &json!("x"))
        );
    }

    #[test]
    fn the_descriptor_says_what_happens_to_what_does_not_fit() {
        let folder = tempfile::tempdir().expect("a folder");
        let lenient = json!({"on_validation_error": "log", "on_transform_error": "default"});
        let (rows, wrong, counts) = run(&plan(folder.path(), people(lenient)));
        assert_eq!(rows[1], json!({"id": "2", "name": ""}));
        assert_eq!(rows[2]["years"], "200");
        assert_eq!((wrong.len(), counts.expect("ended").flawed), (2, 2));

        let strict = json!({"on_validation_error": "fail", "on_transform_error": "fail"});
        let (rows, _, counts) = run(&plan(folder.path(), people(strict)));
        assert_eq!(rows.len(), 1);
        let error = counts.expect_err("failed").to_string();
        assert!(error.contains("record 2 (line 3): years"), "{error}");

        let mut few = plan(folder.path(), people(json!({})));
        few.max_errors = 1;
        let error = run(&few).2.expect_err("too many").to_string();
        assert!(
            error.contains("record 3 (line 4)") && error.contains("more than the 1"),
            "{error}"
        );
    }

    #[test]
    fn rows_fit_their_schema_before_they_are_sent() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut plan = plan(folder.path(), people(json!({"on_validation_error": "log"})));
        let table = r#"{"fields": [{"name": "id", "primary_key": true},
            {"name": "years", "type": "integer", "required": true}]}"#;
        plan.table = Some(Table::read("people", table).expect("a table"));
        let (rows, wrong, _) = run(&plan);
        assert_eq!(rows.len(), 2);
        assert!(
            wrong.contains(&"record 4 (line 5): years: is required and has no value".to_owned())
        );
    }

    #[test]
    fn a_column_that_is_not_there_ends_it_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let descriptor = json!({"mappings": [{"source": "id"}, {"source": "colour"}]});
        let (rows, _, counts) = run(&plan(folder.path(), descriptor));
        assert!(rows.is_empty());
        let error = counts.expect_err("refused").to_string();
        assert!(
            error.contains("no column 'colour' (mappings[1]") && error.contains("id, name, age"),
            "{error}"
        );
        let by_number = json!({
            "format": {"options": {"has_header": false, "skip_rows": 1}},
            "mappings": [{"source": "0", "target": "id"}],
        });
        let mut plan = plan(folder.path(), by_number);
        plan.limit = 2;
        let (rows, _, counts) = run(&plan);
        assert_eq!(rows, [json!({"id": "1"}), json!({"id": "2"})]);
        assert_eq!(counts.expect("ended").records, 2);
    }
}
