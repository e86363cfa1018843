//! Schemas of rows as configuration has them, and as prompts show them.

use serde::Deserialize;
use serde_json::{Value, json};

use super::lexical::Texts;

/// A schema of rows.
#[derive(Debug, Clone, PartialEq, Deserialize, Default)]
#[serde(default)]
pub struct Schema {
    /// Name that queries use: its key in the configuration.
    #[serde(skip)]
    pub key: String,
    /// What the rows are.
    pub description: String,
    /// Fields.
    pub fields: Vec<Field>,
}

/// A field.
#[derive(Debug, Clone, PartialEq, Deserialize, Default)]
#[serde(default)]
pub struct Field {
    /// Name.
    pub name: String,
    /// Kind of values.
    pub r#type: String,
    /// What it means.
    pub description: String,
    /// Whether it identifies a row.
    pub primary_key: bool,
    /// Whether every row has it.
    pub required: bool,
    /// Whether it can be looked up.
    pub indexed: bool,
    /// The only values it may have.
    pub r#enum: Vec<Value>,
}

/// Reads rows of config type `schema`. One that cannot be read costs itself and no other.
pub fn read<'a>(rows: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Schema> {
    rows.filter_map(|(key, value)| {
        let schema: Schema = serde_json::from_str(value).ok()?;
        Some(Schema {
            key: key.to_owned(),
            ..schema
        })
    })
    .collect()
}

impl Schema {
    /// For choosing among schemas and for describing data.
    pub fn brief(&self) -> Value {
        let fields: Vec<Value> = self
            .fields
            .iter()
            .map(|field| {
                json!({
                    "name": field.name, "type": field.r#type, "description": field.description,
                })
            })
            .collect();
        json!({"name": self.key, "description": self.description, "fields": fields})
    }

    /// For writing queries.
    pub fn full(&self) -> Value {
        let fields: Vec<Value> = self
            .fields
            .iter()
            .map(|field| {
                json!({
                    "name": field.name, "type": field.r#type, "description": field.description,
                    "required": field.required, "primary_key": field.primary_key,
                    "indexed": field.indexed, "enum_values": field.r#enum,
                })
            })
            .collect();
        json!({"name": self.key, "description": self.description, "fields": fields})
    }

    fn text(&self) -> String {
        let fields: Vec<String> = self
            .fields
            .iter()
            .map(|field| format!("{} {}", field.name, field.description))
            .collect();
        format!("{} {} {}", self.key, self.description, fields.join(" "))
    }
}

/// The schemas that a model named, in its order; names that are none are left out.
pub fn named<'a>(schemas: &'a [Schema], reply: &Value) -> Vec<&'a Schema> {
    let names = match reply {
        Value::Array(names) => names.as_slice(),
        Value::Object(map) => map
            .values()
            .find_map(Value::as_array)
            .map_or(&[][..], Vec::as_slice),
        _ => &[],
    };
    let mut found: Vec<&Schema> = Vec::new();
    for name in names {
        let name = name
            .as_str()
            .or_else(|| name.get("name")?.as_str())
            .unwrap_or_default();
        let wanted = schemas
            .iter()
            .find(|schema| schema.key == name)
            .or_else(|| {
                let alike = |schema: &&Schema| schema.key.eq_ignore_ascii_case(name);
                schemas.iter().find(alike)
            });
        if let Some(schema) = wanted
            && !found.iter().any(|known| known.key == schema.key)
        {
            found.push(schema);
        }
    }
    found
}

/// Schemas whose words fit a question, best first, for a model that named none.
pub fn fitting<'a>(schemas: &'a [Schema], question: &str, most: usize) -> Vec<&'a Schema> {
    let texts: Vec<String> = schemas.iter().map(Schema::text).collect();
    let mut scored: Vec<(f64, &Schema)> = Texts::new(&texts)
        .scores(question)
        .into_iter()
        .zip(schemas)
        .filter(|(score, _)| *score > 0.0)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored
        .into_iter()
        .take(most)
        .map(|(_, schema)| schema)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schemas() -> Vec<Schema> {
        read(
            [
                (
                    "orders",
                    r#"{"name": "x", "description": "What was bought", "fields": [
                    {"name": "total", "type": "float", "enum": ["1"], "size": 4}]}"#,
                ),
                ("people", r#"{"description": "Customers", "fields": []}"#),
                ("broken", "{"),
            ]
            .into_iter(),
        )
    }

    #[test]
    fn only_what_is_there_can_be_named() {
        let schemas = schemas();
        let keys = |found: Vec<&Schema>| -> Vec<String> {
            found.into_iter().map(|schema| schema.key.clone()).collect()
        };
        let reply = json!(["People", {"name": "orders"}, "people", "no such"]);
        assert_eq!(keys(named(&schemas, &reply)), ["people", "orders"]);
        assert_eq!(
            keys(named(&schemas, &json!({"schemas": ["orders"]}))),
            ["orders"]
        );
        assert!(named(&schemas, &json!("orders")).is_empty());
        assert_eq!(
            keys(fitting(&schemas, "How many customers?", 3)),
            ["people"]
        );
        assert_eq!(schemas[0].full()["fields"][0]["enum_values"], json!(["1"]));
    }
}
