//! Schemas of rows as configuration has them, and as prompts show them.

use serde_json::{Value, json};
use tg_schemas::table::Table;

use super::lexical::Texts;

/// Reads rows of config type `schema`. One that cannot be read costs itself and no other.
pub fn read<'a>(rows: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Table> {
    rows.filter_map(|(key, value)| Table::read(key, value).ok())
        .collect()
}

/// For choosing among schemas and for describing data.
pub fn brief(table: &Table) -> Value {
    let fields: Vec<Value> = table
        .fields
        .iter()
        .map(|field| {
            json!({"name": field.name, "type": field.type_name, "description": field.description})
        })
        .collect();
    json!({"name": table.key, "description": table.description, "fields": fields})
}

/// For writing queries.
pub fn full(table: &Table) -> Value {
    let fields: Vec<Value> = table
        .fields
        .iter()
        .map(|field| {
            json!({
                "name": field.name, "type": field.type_name, "description": field.description,
                "required": field.required, "primary_key": field.primary_key,
                "indexed": field.indexed, "enum_values": field.choices,
            })
        })
        .collect();
    json!({"name": table.key, "description": table.description, "fields": fields})
}

fn text(table: &Table) -> String {
    let fields: Vec<String> = table
        .fields
        .iter()
        .map(|field| format!("{} {}", field.name, field.description))
        .collect();
    format!("{} {} {}", table.key, table.description, fields.join(" "))
}

/// The schemas that a model named, in its order; names that are none are left out.
pub fn named<'a>(schemas: &'a [Table], reply: &Value) -> Vec<&'a Table> {
    let names = match reply {
        Value::Array(names) => names.as_slice(),
        Value::Object(map) => map
            .values()
            .find_map(Value::as_array)
            .map_or(&[][..], Vec::as_slice),
        _ => &[],
    };
    let mut found: Vec<&Table> = Vec::new();
    for name in names {
        let name = name
            .as_str()
            .or_else(|| name.get("name")?.as_str())
            .unwrap_or_default();
        let wanted = schemas
            .iter()
            .find(|schema| schema.key == name)
            .or_else(|| {
                let alike = |schema: &&Table| schema.key.eq_ignore_ascii_case(name);
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
pub fn fitting<'a>(schemas: &'a [Table], question: &str, most: usize) -> Vec<&'a Table> {
    let texts: Vec<String> = schemas.iter().map(text).collect();
    let mut scored: Vec<(f64, &Table)> = Texts::new(&texts)
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

    fn schemas() -> Vec<Table> {
        read(
            [
                (
                    "orders",
                    r#"{"name": "x", "description": "What was bought", "fields": [
                    {"name": "total", "type": "float", "enum": ["1"], "size": 4}]}"#,
                ),
                (
                    "people",
                    r#"{"description": "Customers", "fields": [{"name": "name"}]}"#,
                ),
                ("broken", "{"),
            ]
            .into_iter(),
        )
    }

    #[test]
    fn only_what_is_there_can_be_named() {
        let schemas = schemas();
        let keys = |found: Vec<&Table>| -> Vec<String> {
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
        assert_eq!(full(&schemas[0])["fields"][0]["enum_values"], json!(["1"]));
    }
}
