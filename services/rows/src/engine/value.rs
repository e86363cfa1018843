//! Typed values of fields, from the texts that records carry.

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

use tg_schemas::table::{Field, Table};

pub use tg_schemas::table::Value;

use crate::error::RowsError;

/// Bytes that differ for values that differ.
fn digest(value: &Value, into: &mut Sha256) {
    let mut part = |tag: u8, bytes: &[u8]| {
        into.update([tag]);
        into.update((bytes.len() as u64).to_le_bytes());
        into.update(bytes);
    };
    match value {
        Value::Null => part(0, b""),
        Value::Text(text) => part(1, text.as_bytes()),
        Value::Integer(number) => part(2, &number.to_le_bytes()),
        Value::Float(number) => part(3, &number.to_le_bytes()),
        Value::Boolean(truth) => part(4, &[u8::from(*truth)]),
    }
}

/// A row that fits its table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What makes it the same row: a hash of its primary key, or of all its values.
    pub key: [u8; 32],
    /// One per field of the table, in order.
    pub values: Vec<Value>,
    /// The texts it was read from, kept for a table that changes later.
    pub texts: BTreeMap<String, String>,
}

/// Reads a row of texts. Fields that the table does not have are left out. The error names the field.
///
/// # Errors
/// [`RowsError::Field`] for the first field that cannot be read.
pub fn row(table: &Table, texts: &BTreeMap<String, String>) -> Result<Row, RowsError> {
    let mut values = Vec::with_capacity(table.fields.len());
    let mut kept = BTreeMap::new();
    for field in &table.fields {
        let text = texts.get(&field.name);
        let value = field.value(text.map(String::as_str));
        values.push(value.map_err(|why| RowsError::field(field.name.clone(), why.to_string()))?);
        if let Some(text) = text {
            kept.insert(field.name.clone(), text.clone());
        }
    }
    if values.iter().all(|value| *value == Value::Null) {
        return Err(RowsError::field(
            "values",
            "a row has no field of its schema",
        ));
    }
    Ok(Row {
        key: key(table, &values),
        values,
        texts: kept,
    })
}

/// As [`row`] for a row that was stored under another shape of its table: what no longer fits is no value.
pub fn reread(table: &Table, texts: BTreeMap<String, String>) -> Row {
    let read = |field: &Field| {
        texts
            .get(&field.name)
            .and_then(|text| Value::read(field.kind, text).ok())
            .unwrap_or(Value::Null)
    };
    let values: Vec<_> = table.fields.iter().map(read).collect();
    Row {
        key: key(table, &values),
        values,
        texts,
    }
}

fn key(table: &Table, values: &[Value]) -> [u8; 32] {
    let of_key = table.fields.iter().any(|field| field.primary_key);
    let mut hash = Sha256::new();
    for (field, value) in table.fields.iter().zip(values) {
        if field.primary_key || !of_key {
            digest(value, &mut hash);
        }
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(fields: &str) -> Table {
        Table::read("t", &format!(r#"{{"fields": {fields}}}"#)).unwrap()
    }

    fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        pairs.iter().map(own).collect()
    }

    #[test]
    fn the_key_decides_what_is_the_same_row() {
        let keyed =
            table(r#"[{"name": "id", "type": "integer", "primary_key": true}, {"name": "n"}]"#);
        let one = row(&keyed, &texts(&[("id", "1"), ("n", "a")])).unwrap();
        let again = row(&keyed, &texts(&[("id", "1.0"), ("n", "b"), ("other", "x")])).unwrap();
        assert_eq!(one.key, again.key);
        assert!(!again.texts.contains_key("other"));
        let open = table(r#"[{"name": "a"}, {"name": "b"}]"#);
        let ab = row(&open, &texts(&[("a", "x"), ("b", "yz")])).unwrap();
        let other = row(&open, &texts(&[("a", "xy"), ("b", "z")])).unwrap();
        assert_ne!(ab.key, other.key);
    }

    #[test]
    fn what_does_not_fit_names_its_field() {
        let strict = table(
            r#"[{"name": "id", "primary_key": true, "type": "uuid"}, {"name": "n", "type": "integer"},
                {"name": "c", "enum": ["red"]}]"#,
        );
        let fault = |pairs: &[(&str, &str)]| row(&strict, &texts(pairs)).unwrap_err().to_string();
        assert_eq!(fault(&[("n", "1")]), "id: is required and has no value");
        assert_eq!(
            fault(&[("id", "u"), ("n", "x")]),
            "n: is not a whole number"
        );
        assert_eq!(
            fault(&[("id", "u"), ("c", "blue")]),
            "c: is not one of the allowed values"
        );
        let open = table(r#"[{"name": "a"}]"#);
        let nothing = row(&open, &texts(&[("b", "1")])).unwrap_err();
        assert_eq!(
            nothing.to_string(),
            "values: a row has no field of its schema"
        );
    }
}
