//! Whether a descriptor fills rows of a schema.

use tg_schemas::table::Table;

use super::descriptor::Descriptor;

/// Whether a descriptor fills rows of a schema.
pub(super) fn suits(descriptor: &Descriptor, table: &Table) -> Result<(), String> {
    for (at, mapping) in descriptor.mappings.iter().enumerate() {
        if !table
            .fields
            .iter()
            .any(|field| field.name == mapping.target)
        {
            let names: Vec<&str> = table.fields.iter().map(|f| f.name.as_str()).collect();
            return Err(format!(
                "mappings[{at}].target_field: the schema '{}' has no field '{}'; it has {}",
                table.key,
                mapping.target,
                names.join(", ")
            ));
        }
    }
    let filled = |name: &str| {
        descriptor
            .mappings
            .iter()
            .any(|mapping| mapping.target == name)
    };
    let needed = table
        .fields
        .iter()
        .filter(|field| field.required || field.primary_key);
    match needed.into_iter().find(|field| !filled(&field.name)) {
        None => Ok(()),
        Some(field) => Err(format!(
            "mappings: nothing fills '{}', which the schema '{}' requires",
            field.name, table.key
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_descriptor_fills_what_the_schema_has_and_requires() {
        let table = r#"{"fields": [{"name": "id", "primary_key": true}, {"name": "n"}]}"#;
        let table = Table::read("t", table).expect("a table");
        let check = |mappings: Value| {
            let descriptor = Descriptor::of(&json!({"mappings": mappings})).expect("read");
            suits(&descriptor, &table)
        };
        assert_eq!(check(json!([{"source": "id"}])), Ok(()));
        let why = check(json!([{"source": "id"}, {"source": "x"}])).expect_err("refused");
        assert!(
            why.contains("mappings[1].target_field: the schema 't' has no field 'x'; it has id, n")
        );
        let why = check(json!([{"source": "n"}])).expect_err("refused");
        assert!(why.contains("nothing fills 'id'"), "{why}");
    }
}
