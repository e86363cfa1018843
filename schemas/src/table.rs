//! Tables of rows as the configuration describes them: config type `schema`, key = the name queries use.
//!
//! ```json
//! {"name": "Cities", "description": "…", "fields": [{"name": "id", "type": "integer", "primary_key": true}],
//!  "query-indexes": ["name"], "vector-indexes": ["name"]}
//! ```

mod value;

use serde::Deserialize;
use serde_json::Value as Json;

pub use value::{Misfit, Value};

/// Config type of these rows.
pub const TABLE: &str = "schema";
/// Most fields of a table.
const FIELDS: usize = 512;

/// Kind of a field's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Kind {
    /// Any text; also what an unknown type name means.
    #[default]
    String,
    /// A whole number of 64 bits.
    Integer,
    /// A number of 64 bits.
    Float,
    /// True or false.
    Boolean,
    /// A date with a time, ISO 8601.
    Timestamp,
    /// A date, ISO 8601.
    Date,
    /// A time of day, ISO 8601.
    Time,
    /// A UUID.
    Uuid,
}

impl Kind {
    /// The kind of a type name.
    pub fn of(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "integer" | "int" => Self::Integer,
            "float" => Self::Float,
            "boolean" | "bool" => Self::Boolean,
            "timestamp" => Self::Timestamp,
            "date" => Self::Date,
            "time" => Self::Time,
            "uuid" => Self::Uuid,
            _ => Self::String,
        }
    }
}

/// A whole number, also when it is written as `42.0`.
pub fn whole(text: &str) -> Option<i64> {
    let digits = match text.split_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|digit| digit == b'0') => {
            whole
        }
        _ => text,
    };
    digits.parse().ok()
}

/// A number; never NaN or infinite.
pub fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// A truth value as people write it: `true`, `yes`, `1`, `false`, `no`, `0`.
pub fn truth(text: &str) -> Option<bool> {
    let is = |known: [&str; 3]| known.iter().any(|known| text.eq_ignore_ascii_case(known));
    match (is(["true", "yes", "1"]), is(["false", "no", "0"])) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// One field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: String,
    /// Kind of its values.
    pub kind: Kind,
    /// The kind's name as configured.
    pub type_name: String,
    /// Most characters; 0 is any number.
    pub size: usize,
    /// Part of what identifies a row.
    pub primary_key: bool,
    /// Always has a value.
    pub required: bool,
    /// Queries look rows up by it: configured so, named in `query-indexes`, or part of the key.
    pub indexed: bool,
    /// What it means.
    pub description: String,
    /// Its only values, if there are any.
    pub choices: Vec<String>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its key in the configuration.
    pub key: String,
    /// What it is called in prompts.
    pub name: String,
    /// What it is about.
    pub description: String,
    /// Its fields, in order.
    pub fields: Vec<Field>,
    /// Fields whose values are embedded.
    pub vector_indexes: Vec<String>,
}

#[derive(Deserialize)]
struct Row {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    fields: Vec<FieldRow>,
    #[serde(default, rename = "query-indexes", alias = "query_indexes")]
    query_indexes: Option<Vec<String>>,
    #[serde(default, rename = "vector-indexes", alias = "vector_indexes")]
    vector_indexes: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct FieldRow {
    name: String,
    #[serde(default)]
    r#type: Option<String>,
    #[serde(default)]
    size: Option<Json>,
    #[serde(default, alias = "primary")]
    primary_key: Option<bool>,
    #[serde(default)]
    required: Option<bool>,
    #[serde(default)]
    indexed: Option<bool>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default, alias = "enum_values")]
    r#enum: Option<Vec<Json>>,
}

impl Table {
    /// Reads a config row. The error says what is wrong with which field.
    ///
    /// # Errors
    /// What is wrong with which field, in words for whoever wrote the row.
    pub fn read(key: &str, value: &str) -> Result<Self, String> {
        let row: Row =
            serde_json::from_slice(value.as_bytes()).map_err(|error| error.to_string())?;
        if row.fields.is_empty() {
            return Err("fields: is required".to_owned());
        }
        if row.fields.len() > FIELDS {
            return Err(format!("fields: has more than {FIELDS}"));
        }
        let queried = row.query_indexes.unwrap_or_default();
        let mut fields: Vec<Field> = Vec::with_capacity(row.fields.len());
        for field in row.fields {
            if field.name.trim().is_empty() {
                return Err("fields: every field needs a name".to_owned());
            }
            if fields.iter().any(|known| known.name == field.name) {
                return Err(format!("fields: '{}' occurs twice", field.name));
            }
            fields.push(field.read(&queried));
        }
        let known = |name: &String| fields.iter().any(|field| field.name == *name);
        let vector_indexes = row.vector_indexes.unwrap_or_default();
        if let Some(name) = queried
            .iter()
            .chain(&vector_indexes)
            .find(|name| !known(name))
        {
            return Err(format!("indexes: there is no field '{name}'"));
        }
        Ok(Self {
            key: key.to_owned(),
            name: row
                .name
                .filter(|name| !name.is_empty())
                .unwrap_or_else(|| key.to_owned()),
            description: row.description.unwrap_or_default(),
            fields,
            vector_indexes,
        })
    }
}

impl FieldRow {
    fn read(self, queried: &[String]) -> Field {
        let type_name = self.r#type.unwrap_or_else(|| "string".to_owned());
        let size = self.size.as_ref().and_then(|size| match size {
            Json::String(text) => text.parse().ok(),
            other => other.as_u64(),
        });
        let plain = |value: Json| match value {
            Json::String(text) => text,
            other => other.to_string(),
        };
        let primary_key = self.primary_key.unwrap_or(false);
        Field {
            kind: Kind::of(&type_name),
            type_name,
            size: size
                .and_then(|size| usize::try_from(size).ok())
                .unwrap_or(0),
            primary_key,
            required: self.required.unwrap_or(false),
            indexed: primary_key || self.indexed.unwrap_or(false) || queried.contains(&self.name),
            description: self.description.unwrap_or_default(),
            choices: self
                .r#enum
                .unwrap_or_default()
                .into_iter()
                .map(plain)
                .collect(),
            name: self.name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_with_its_indexes() {
        let table = Table::read(
            "cities",
            r#"{"fields": [{"name": "id", "type": "Integer", "primary_key": true, "size": "4"},
                {"name": "name", "enum": ["a", 1]}, {"name": "odd", "type": "colour"}],
                "query-indexes": ["name"], "vector-indexes": ["name"]}"#,
        )
        .unwrap();
        assert_eq!(table.name, "cities");
        let indexed: Vec<_> = table.fields.iter().map(|field| field.indexed).collect();
        assert_eq!(indexed, [true, true, false]);
        assert_eq!(
            (table.fields[0].kind, table.fields[0].size),
            (Kind::Integer, 4)
        );
        assert_eq!(table.fields[1].choices, ["a", "1"]);
        assert_eq!(table.fields[2].kind, Kind::String);
        assert_eq!(table.vector_indexes, ["name"]);
    }

    #[test]
    fn a_bad_row_names_its_fault() {
        let fault = |text: &str| Table::read("x", text).unwrap_err();
        assert_eq!(fault(r#"{"fields": []}"#), "fields: is required");
        let twice = r#"{"fields": [{"name": "a"}, {"name": "a"}]}"#;
        assert_eq!(fault(twice), "fields: 'a' occurs twice");
        let index = r#"{"fields": [{"name": "a"}], "query-indexes": ["b"]}"#;
        assert_eq!(fault(index), "indexes: there is no field 'b'");
        assert!(fault("{").contains("EOF"));
    }
}
