//! Typed values of fields, from the texts that records carry.

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

use tg_schemas::table::{Field, Kind, Table, number, truth, whole};

use crate::error::RowsError;

/// A value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// There is none.
    Null,
    /// Text, also dates, times and UUIDs.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number; never NaN or infinite.
    Float(f64),
    /// True or false.
    Boolean(bool),
}

impl Value {
    /// Reads a text as a field's kind. An empty text of another kind than `string` is no value.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn read(kind: Kind, text: &str) -> Result<Self, &'static str> {
        let bare = text.trim();
        if bare.is_empty() && kind != Kind::String {
            return Ok(Self::Null);
        }
        match kind {
            Kind::Integer => whole(bare)
                .map(Self::Integer)
                .ok_or("is not a whole number"),
            Kind::Float => number(bare).map(Self::Float).ok_or("is not a number"),
            Kind::Boolean => truth(bare)
                .map(Self::Boolean)
                .ok_or("is neither true nor false"),
            Kind::String => Ok(Self::Text(text.to_owned())),
            Kind::Timestamp | Kind::Date | Kind::Time | Kind::Uuid => {
                Ok(Self::Text(bare.to_owned()))
            }
        }
    }

    /// Bytes that differ for values that differ.
    fn digest(&self, into: &mut Sha256) {
        let mut part = |tag: u8, bytes: &[u8]| {
            into.update([tag]);
            into.update((bytes.len() as u64).to_le_bytes());
            into.update(bytes);
        };
        match self {
            Self::Null => part(0, b""),
            Self::Text(text) => part(1, text.as_bytes()),
            Self::Integer(number) => part(2, &number.to_le_bytes()),
            Self::Float(number) => part(3, &number.to_le_bytes()),
            Self::Boolean(truth) => part(4, &[u8::from(*truth)]),
        }
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
        let value = value(field, texts.get(&field.name).map(String::as_str))?;
        if let Some(text) = texts.get(&field.name) {
            kept.insert(field.name.clone(), text.clone());
        }
        values.push(value);
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

fn value(field: &Field, text: Option<&str>) -> Result<Value, RowsError> {
    let fault = |why: &str| RowsError::field(field.name.clone(), why);
    let value = match text {
        Some(text) => Value::read(field.kind, text).map_err(fault)?,
        None => Value::Null,
    };
    if value == Value::Null && (field.required || field.primary_key) {
        return Err(fault("is required and has no value"));
    }
    if let Value::Text(text) = &value
        && !field.choices.is_empty()
        && !field.choices.contains(text)
    {
        return Err(fault("is not one of the allowed values"));
    }
    Ok(value)
}

fn key(table: &Table, values: &[Value]) -> [u8; 32] {
    let of_key = table.fields.iter().any(|field| field.primary_key);
    let mut hash = Sha256::new();
    for (field, value) in table.fields.iter().zip(values) {
        if field.primary_key || !of_key {
            value.digest(&mut hash);
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
    fn texts_become_typed_values() {
        assert_eq!(Value::read(Kind::Integer, " 42.0 "), Ok(Value::Integer(42)));
        assert_eq!(
            Value::read(Kind::Integer, "4.5"),
            Err("is not a whole number")
        );
        assert_eq!(Value::read(Kind::Boolean, "True"), Ok(Value::Boolean(true)));
        assert_eq!(Value::read(Kind::Float, "NaN"), Err("is not a number"));
        assert_eq!(Value::read(Kind::Date, ""), Ok(Value::Null));
        assert_eq!(
            Value::read(Kind::String, ""),
            Ok(Value::Text(String::new()))
        );
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
