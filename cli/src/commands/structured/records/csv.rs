//! CSV as RFC 4180 has it, with other delimiters, quotes and escapes where a descriptor says so.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

use serde_json::Value;

use super::{Fields, Out};
use crate::client::Result;

/// Most columns.
const COLUMNS: usize = 4096;

/// How a CSV file is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct CsvOptions {
    pub(in super::super) delimiter: u8,
    /// `None`: cells are what stands between delimiters.
    pub(in super::super) quote: Option<u8>,
    /// Takes the meaning from what follows it; absent, a quote is doubled.
    pub(in super::super) escape: Option<u8>,
    /// Lines before the header, or before the first record where there is no header.
    pub(in super::super) skip_rows: u64,
    pub(in super::super) has_header: bool,
    /// Cells that mean that there is no value.
    pub(in super::super) null_values: BTreeSet<String>,
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self {
            delimiter: b',',
            quote: Some(b'"'),
            escape: None,
            skip_rows: 0,
            has_header: true,
            null_values: BTreeSet::new(),
        }
    }
}

/// Hands over each record. Blank lines are none, and neither are lines of nothing but delimiters.
pub(super) fn each(
    options: &CsvOptions,
    reader: impl BufRead,
    columns: &mut dyn FnMut(&[String]) -> Result<(), String>,
    out: &mut Out<'_, '_>,
) -> Result<()> {
    let mut lines = Lines {
        options,
        reader,
        line: 0,
        raw: Vec::new(),
    };
    for _ in 0..options.skip_rows {
        lines.skip(out)?;
    }
    let mut names: Vec<String> = Vec::new();
    if options.has_header {
        let Some((_, header)) = lines.next(out)? else {
            return Err(out.fault("has no header line"));
        };
        names = distinct(header);
        columns(&names).map_err(|why| out.fault(why))?;
        out.allowance.renew();
    }
    while let Some((line, mut cells)) = lines.next(out)? {
        if names.is_empty() {
            names = (1..=cells.len()).map(|n| format!("field_{n}")).collect();
            columns(&names).map_err(|why| out.fault(why))?;
        }
        // Some writers end each record with a delimiter more than the header has.
        let held = cells.iter().rposition(|cell| !cell.trim().is_empty());
        cells.truncate(held.map_or(0, |last| last + 1).max(names.len()));
        let fields = match cells.len() > names.len() {
            true => Err(format!(
                "has {} cells where there are {} columns",
                cells.len(),
                names.len()
            )),
            false => Ok(record(options, &names, cells)),
        };
        if !out.put(Some(line), fields)? {
            break;
        }
    }
    Ok(())
}

/// Each column has a name of its own: one without a name has its number, and one whose name another has before it a
/// number behind it. The first of several keeps the name.
fn distinct(header: Vec<String>) -> Vec<String> {
    let mut taken: BTreeSet<String> = header.iter().cloned().collect();
    let mut seen = BTreeSet::new();
    // Where the next number of a name is looked for, so that a thousand of the same do not take a million looks.
    let mut next: BTreeMap<String, usize> = BTreeMap::new();
    let mut names = Vec::with_capacity(header.len());
    for (place, name) in (1..).zip(header) {
        let bare = name.trim().is_empty();
        if !bare && seen.insert(name.clone()) {
            names.push(name);
            continue;
        }
        let stem = if bare { "field".to_owned() } else { name };
        let number = next.entry(stem.clone()).or_insert(2);
        if bare {
            *number = (*number).max(place);
        }
        let given = loop {
            let given = format!("{stem}_{number}");
            *number += 1;
            if taken.insert(given.clone()) {
                break given;
            }
        };
        names.push(given);
    }
    names
}

fn record(options: &CsvOptions, names: &[String], cells: Vec<String>) -> Fields {
    let value = |cell: String| match options.null_values.contains(&cell) {
        true => Value::Null,
        false => Value::String(cell),
    };
    names
        .iter()
        .cloned()
        .zip(cells.into_iter().map(value))
        .collect()
}

struct Lines<'a, R> {
    options: &'a CsvOptions,
    reader: R,
    /// Lines read so far.
    line: u64,
    raw: Vec<u8>,
}

impl<R: BufRead> Lines<'_, R> {
    fn skip(&mut self, out: &Out<'_, '_>) -> Result<()> {
        self.raw.clear();
        let read = self.reader.read_until(b'\n', &mut self.raw);
        read.map_err(|error| out.fault(error))?;
        self.line += 1;
        out.allowance.renew();
        Ok(())
    }

    /// The next line that holds something, with the number of its first; a quoted cell may hold line ends.
    fn next(&mut self, out: &Out<'_, '_>) -> Result<Option<(u64, Vec<String>)>> {
        loop {
            let begins = self.line + 1;
            let mut cells = Cells::new(self.options);
            loop {
                self.raw.clear();
                let read = self.reader.read_until(b'\n', &mut self.raw);
                let read = read.map_err(|error| out.fault(format!("line {begins}: {error}")))?;
                if read == 0 {
                    return match cells.begun {
                        false => Ok(None),
                        true => {
                            Err(out.fault(format!("line {begins}: a quoted cell does not end")))
                        }
                    };
                }
                self.line += 1;
                cells.take(&self.raw);
                if !cells.quoted {
                    break;
                }
            }
            if cells.is_blank() {
                out.allowance.renew();
                continue;
            }
            let cells = cells
                .end()
                .map_err(|why| out.fault(format!("line {begins}: {why}")))?;
            // What a spreadsheet makes of a row that was emptied.
            if cells.len() > 1 && cells.iter().all(|cell| cell.trim().is_empty()) {
                out.allowance.renew();
                continue;
            }
            return Ok(Some((begins, cells)));
        }
    }
}

/// The cells of a line, and of the lines that go on in a quoted one.
struct Cells<'a> {
    options: &'a CsvOptions,
    done: Vec<Vec<u8>>,
    cell: Vec<u8>,
    /// Something was read.
    begun: bool,
    /// The end of a line belongs to the cell.
    quoted: bool,
    /// The cell began with a quote.
    was_quoted: bool,
}

impl<'a> Cells<'a> {
    fn new(options: &'a CsvOptions) -> Self {
        Self {
            options,
            done: Vec::new(),
            cell: Vec::new(),
            begun: false,
            quoted: false,
            was_quoted: false,
        }
    }

    /// Takes a line with its end.
    fn take(&mut self, line: &[u8]) {
        self.begun = true;
        let CsvOptions {
            delimiter,
            quote,
            escape,
            ..
        } = *self.options;
        let mut bytes = line.iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            if Some(byte) == escape && bytes.peek().is_some() {
                self.cell.extend(bytes.next());
            } else if self.quoted {
                match Some(byte) == quote {
                    true if bytes.peek().copied() == quote => self.cell.extend(bytes.next()),
                    true => self.quoted = false,
                    false => self.cell.push(byte),
                }
            } else if byte == delimiter {
                self.close();
            } else if Some(byte) == quote && self.cell.is_empty() && !self.was_quoted {
                self.quoted = true;
                self.was_quoted = true;
            } else if byte == b'\n' || (byte == b'\r' && matches!(bytes.peek(), None | Some(b'\n')))
            {
                // The end of the line is no part of its last cell.
            } else {
                self.cell.push(byte);
            }
        }
    }

    fn close(&mut self) {
        self.was_quoted = false;
        self.done.push(std::mem::take(&mut self.cell));
    }

    fn is_blank(&self) -> bool {
        self.done.is_empty() && self.cell.is_empty() && !self.was_quoted
    }

    fn end(mut self) -> Result<Vec<String>, String> {
        self.close();
        if self.done.len() > COLUMNS {
            return Err(format!("has more than {COLUMNS} cells"));
        }
        let text = |cell| String::from_utf8(cell).map_err(|_| "is not UTF-8 text".to_owned());
        self.done.into_iter().map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{fields, read};
    use super::super::{Encoding, Format};
    use super::*;
    use serde_json::json;

    #[test]
    fn quotes_line_ends_and_blank_lines_are_read_as_meant() {
        let text = "id,name,note\r\n1,\"Smith, John\",\"says \"\"hi\"\"\"\r\n\r\n, ,\r\n2,\"two\nlines\",\n3,x\n";
        assert_eq!(
            fields(&Format::Csv(CsvOptions::default()), text),
            [
                json!({"id": "1", "name": "Smith, John", "note": "says \"hi\""}),
                json!({"id": "2", "name": "two\nlines", "note": ""}),
                json!({"id": "3", "name": "x"}),
            ]
        );
    }

    #[test]
    fn options_are_honoured() {
        let options = CsvOptions {
            delimiter: b';',
            quote: Some(b'\''),
            escape: Some(b'\\'),
            skip_rows: 2,
            null_values: ["NA".to_owned()].into(),
            ..CsvOptions::default()
        };
        let text = "made by a machine\n\na;b\n'x;y';NA\n'it\\'s';\\;\n";
        assert_eq!(
            fields(&Format::Csv(options), text),
            [
                json!({"a": "x;y", "b": null}),
                json!({"a": "it's", "b": ";"})
            ]
        );
        let bare = CsvOptions {
            has_header: false,
            ..CsvOptions::default()
        };
        assert_eq!(
            fields(&Format::Csv(bare), "1,2\n"),
            [json!({"field_1": "1", "field_2": "2"})]
        );
    }

    #[test]
    fn columns_have_names_of_their_own() {
        let format = Format::Csv(CsvOptions::default());
        assert_eq!(
            fields(&format, "a,a,,a_2, ,a\n1,2,3,4,5,6\n"),
            [json!({"a": "1", "a_3": "2", "field_3": "3", "a_2": "4", "field_5": "5", "a_4": "6"})]
        );
        let many = vec!["x"; COLUMNS].join(",");
        let all = fields(&format, &format!("{many}\n{many}\n"));
        assert_eq!(all[0].as_object().map(serde_json::Map::len), Some(COLUMNS));
    }

    #[test]
    fn delimiters_behind_the_last_cell_are_no_cells() {
        let format = Format::Csv(CsvOptions::default());
        assert_eq!(
            fields(&format, "id,name\n1,Ann,\n2,Bo, ,\n3,,\n"),
            [
                json!({"id": "1", "name": "Ann"}),
                json!({"id": "2", "name": "Bo"}),
                json!({"id": "3", "name": ""})
            ]
        );
        let bare = Format::Csv(CsvOptions {
            has_header: false,
            ..CsvOptions::default()
        });
        assert_eq!(
            fields(&bare, "1,2\n3,4,\n"),
            [
                json!({"field_1": "1", "field_2": "2"}),
                json!({"field_1": "3", "field_2": "4"})
            ]
        );
    }

    #[test]
    fn faults_name_their_line() {
        let format = Format::Csv(CsvOptions::default());
        let fault = |text: &str| {
            let error = read(&format, Encoding::Utf8, text.as_bytes()).expect_err("refused");
            error.to_string()
        };
        assert!(fault("").ends_with("has no header line"));
        assert!(fault("a\n1\n\"2\n3").ends_with("line 3: a quoted cell does not end"));
        let all = read(&format, Encoding::Utf8, b"a,b\n1,2,3\n4,5\n").expect("read");
        let (line, why) = &all[0];
        assert_eq!(*line, Some(2));
        assert_eq!(
            why.as_ref().expect_err("too many"),
            "has 3 cells where there are 2 columns"
        );
        assert!(all[1].1.is_ok());
    }
}
