//! What a table looks like, as the configuration has it.

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Most fields of a table.
const FIELDS: usize = 512;

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaFault {
    /// Not JSON of this shape.
    #[error("schema '{name}': {why}")]
    Unreadable {
        /// Its name.
        name: String,
        /// What is wrong.
        why: String,
    },
}

/// The kind of a field's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// Any text.
    #[default]
    String,
    /// A whole number.
    Integer,
    /// A number.
    Float,
    /// True or false.
    Boolean,
    /// A date with a time.
    Timestamp,
    /// A date.
    Date,
    /// A time of day.
    Time,
    /// A UUID.
    Uuid,
}

impl Kind {
    fn of(name: &str) -> Self {
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

/// One field.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Name.
    pub name: String,
    /// Kind of its values.
    pub kind: Kind,
    /// The kind's name in the configuration.
    pub type_name: String,
    /// Most characters; 0 is any number.
    pub size: usize,
    /// Part of what identifies a row.
    pub primary_key: bool,
    /// Always has a value.
    pub required: bool,
    /// What it means.
    pub description: String,
    /// Its only values, if there are any.
    pub choices: Vec<String>,
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    /// Its key in the configuration: the name that queries use.
    pub key: String,
    /// What it is called in prompts.
    pub name: String,
    /// What it is about.
    pub description: String,
    /// Its fields.
    pub fields: Vec<Field>,
}

#[derive(Deserialize)]
struct Row {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    fields: Vec<FieldRow>,
}

#[derive(Deserialize)]
struct FieldRow {
    name: String,
    #[serde(default)]
    r#type: Option<String>,
    #[serde(default)]
    size: Option<Value>,
    #[serde(default)]
    primary_key: Option<bool>,
    #[serde(default)]
    required: Option<bool>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default, alias = "enum_values")]
    r#enum: Option<Vec<Value>>,
}

impl Schema {
    /// Reads a row of config type `schema`.
    pub fn read(key: &str, value: &str) -> Result<Self, SchemaFault> {
        let unreadable = |why: String| SchemaFault::Unreadable {
            name: key.to_owned(),
            why,
        };
        let row: Row =
            serde_json::from_str(value).map_err(|error| unreadable(error.to_string()))?;
        if row.fields.is_empty() {
            return Err(unreadable("fields: has none".to_owned()));
        }
        if row.fields.len() > FIELDS {
            return Err(unreadable(format!("fields: has more than {FIELDS}")));
        }
        let mut fields: Vec<Field> = Vec::with_capacity(row.fields.len());
        for field in row.fields {
            if field.name.trim().is_empty() {
                return Err(unreadable("fields: one has no name".to_owned()));
            }
            if fields.iter().any(|known| known.name == field.name) {
                return Err(unreadable(format!(
                    "fields: '{}' is there twice",
                    field.name
                )));
            }
            fields.push(field.into());
        }
        Ok(Self {
            key: key.to_owned(),
            name: row
                .name
                .filter(|name| !name.is_empty())
                .unwrap_or(key.to_owned()),
            description: row.description.unwrap_or_default(),
            fields,
        })
    }

    /// The schema as prompts get it.
    pub fn term(&self) -> Value {
        let fields: Vec<Value> = self.fields.iter().map(Field::term).collect();
        json!({"name": self.name, "description": self.description, "fields": fields})
    }
}

impl From<FieldRow> for Field {
    fn from(row: FieldRow) -> Self {
        let type_name = row.r#type.unwrap_or_else(|| "string".to_owned());
        let size = row.size.as_ref().and_then(|size| match size {
            Value::String(text) => text.parse().ok(),
            other => other.as_u64(),
        });
        let plain = |value: Value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        Self {
            name: row.name,
            kind: Kind::of(&type_name),
            type_name,
            size: size
                .and_then(|size| usize::try_from(size).ok())
                .unwrap_or(0),
            primary_key: row.primary_key.unwrap_or(false),
            required: row.required.unwrap_or(false),
            description: row.description.unwrap_or_default(),
            choices: row
                .r#enum
                .unwrap_or_default()
                .into_iter()
                .map(plain)
                .collect(),
        }
    }
}

impl Field {
    fn term(&self) -> Value {
        let mut map = Map::new();
        map.insert("name".into(), self.name.as_str().into());
        map.insert("type".into(), self.type_name.as_str().into());
        map.insert("size".into(), self.size.into());
        map.insert("primary_key".into(), self.primary_key.into());
        map.insert("required".into(), self.required.into());
        map.insert("description".into(), self.description.as_str().into());
        map.insert("enum".into(), self.choices.clone().into());
        Value::Object(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_schemas_say_what_is_wrong() {
        for (value, why) in [
            ("nonsense", "expected"),
            ("{}", "missing field `fields`"),
            (r#"{"fields": []}"#, "fields: has none"),
            (r#"{"fields": [{"name": " "}]}"#, "fields: one has no name"),
            (
                r#"{"fields": [{"name": "a"}, {"name": "a"}]}"#,
                "'a' is there twice",
            ),
            (
                r#"{"fields": [{"type": "string"}]}"#,
                "missing field `name`",
            ),
        ] {
            let fault = Schema::read("s", value).unwrap_err().to_string();
            assert!(
                fault.starts_with("schema 's': ") && fault.contains(why),
                "{fault}"
            );
        }
    }

    #[test]
    fn defaults_are_filled_in() {
        let schema = Schema::read(
            "s",
            r#"{"fields": [{"name": "a", "type": "Integer", "size": "3",
            "enum": [1, "2"], "primary_key": null}, {"name": "b", "type": "blob"}]}"#,
        )
        .unwrap();
        assert_eq!((schema.name.as_str(), schema.key.as_str()), ("s", "s"));
        let [a, b] = &schema.fields[..] else { panic!() };
        assert_eq!((a.kind, a.size, a.primary_key), (Kind::Integer, 3, false));
        assert_eq!(a.choices, ["1", "2"]);
        assert_eq!((b.kind, b.type_name.as_str()), (Kind::String, "blob"));
        assert_eq!(schema.term()["fields"][1]["type"], "blob");
    }
}
