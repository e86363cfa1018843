//! A table as the rows prompt shows it to a model.

use serde_json::{Value, json};
use tg_schemas::table::{Field, Table};

/// What the prompt's template calls `schema`.
pub fn term(table: &Table) -> Value {
    let fields: Vec<Value> = table.fields.iter().map(field).collect();
    json!({"name": table.name, "description": table.description, "fields": fields})
}

fn field(field: &Field) -> Value {
    json!({
        "name": field.name, "type": field.type_name, "size": field.size,
        "primary_key": field.primary_key, "required": field.required,
        "description": field.description, "enum": field.choices,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_sees_types_as_configured() {
        let table = Table::read(
            "s",
            r#"{"fields": [{"name": "a", "type": "Integer", "size": "3"}, {"name": "b", "type": "blob"}]}"#,
        )
        .unwrap();
        let shown = term(&table);
        assert_eq!(shown["name"], "s");
        assert_eq!(shown["fields"][0]["size"], 3);
        assert_eq!(shown["fields"][1]["type"], "blob");
    }
}
