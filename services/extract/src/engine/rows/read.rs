//! Items of a reply as rows of a table. What is no row is left out and reported.

use std::collections::BTreeMap;

use serde_json::Value;
use tg_schemas::table::Table;

use super::value;
use crate::engine::items::{Items, field};

/// Faults whose text is kept.
const SHOWN: usize = 5;

/// What a reply holds for one table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    /// Rows, values by field; fields without a value are left out.
    pub rows: Vec<BTreeMap<String, String>>,
    /// How many items are no rows.
    pub bad: usize,
    /// Why the first of them are not.
    pub faults: Vec<String>,
}

/// Reads a reply.
pub fn read(table: &Table, items: &Items) -> Rows {
    let mut read = Rows {
        bad: items.bad,
        ..Rows::default()
    };
    for item in &items.values {
        match row(table, item) {
            Ok(row) if read.rows.contains(&row) => {}
            Ok(row) => read.rows.push(row),
            Err(fault) => {
                read.bad += 1;
                if read.faults.len() < SHOWN {
                    read.faults.push(format!("{}: {fault}", table.key));
                }
            }
        }
    }
    read
}

fn row(table: &Table, item: &Value) -> Result<BTreeMap<String, String>, String> {
    let mut row = BTreeMap::new();
    for known in &table.fields {
        let given = field(item, &[&known.name]).filter(|value| !is_blank(value));
        let Some(given) = given else {
            if known.primary_key || known.required {
                return Err(format!("{}: is required", known.name));
            }
            continue;
        };
        let value =
            value::read(known, given).map_err(|fault| format!("{}: {fault}", known.name))?;
        row.insert(known.name.clone(), value);
    }
    if row.is_empty() {
        return Err("has none of the fields".to_owned());
    }
    Ok(row)
}

fn is_blank(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn invalid_rows_are_left_out_and_told() {
        let table = Table::read(
            "bridge",
            r#"{"fields": [{"name": "name", "primary_key": true}, {"name": "built", "type": "integer"},
                {"name": "town", "required": true}]}"#,
        )
        .unwrap();
        let items = Items {
            values: vec![
                json!({"name": "Old Bridge", "built": 1429, "town": "Tarn", "colour": "red"}),
                json!({"name": "Old Bridge", "built": "1429", "town": "Tarn"}),
                json!({"name": "New Bridge", "built": null, "town": "Tarn"}),
                json!({"name": " ", "built": 1, "town": "Tarn"}),
                json!({"name": "Low Bridge", "built": "long ago", "town": "Tarn"}),
                json!({"name": "High Bridge"}),
            ],
            bad: 1,
        };
        let read = read(&table, &items);
        let names: Vec<&str> = read.rows.iter().map(|row| row["name"].as_str()).collect();
        assert_eq!(names, ["Old Bridge", "New Bridge"]);
        assert_eq!(read.rows[0].len(), 3);
        assert_eq!(read.rows[1].len(), 2);
        assert_eq!(read.bad, 4);
        assert_eq!(
            read.faults,
            [
                "bridge: name: is required",
                "bridge: built: is not a whole number",
                "bridge: town: is required"
            ]
        );
    }
}
