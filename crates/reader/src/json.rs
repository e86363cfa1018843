//! The smallest value that follows a schema, with text quoted from the prompt. Invents no numbers.

use serde_json::{Map, Value};

use super::passages;

const DEPTH: usize = 16;

/// A value for the schema, as JSON text.
pub(super) fn instance(schema: &Map<String, Value>, prompt: &str) -> String {
    value(&Value::Object(schema.clone()), prompt, DEPTH).to_string()
}

fn value(schema: &Value, prompt: &str, depth: usize) -> Value {
    if let Some(fixed) = schema.get("const").or_else(|| schema.get("enum")?.get(0)) {
        return fixed.clone();
    }
    if depth == 0 {
        return Value::Null;
    }
    for choice in ["anyOf", "oneOf", "allOf"] {
        if let Some(first) = schema.get(choice).and_then(|list| list.get(0)) {
            return value(first, prompt, depth - 1);
        }
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        Some(kind) => kind.as_str(),
        None => None,
    };
    match kind {
        Some("string") => Value::String(passages::answer(prompt)),
        Some("integer" | "number") => Value::from(0),
        Some("boolean") => Value::Bool(false),
        Some("array") => Value::Array(Vec::new()),
        Some("null") => Value::Null,
        _ => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let required = schema.get("required").and_then(Value::as_array);
            let needed = |name: &String| {
                required.is_some_and(|names| names.iter().any(|other| other.as_str() == Some(name)))
            };
            let fields = properties.into_iter().flatten();
            Value::Object(
                fields
                    .filter(|(name, _)| needed(name))
                    .map(|(name, schema)| (name.clone(), value(schema, prompt, depth - 1)))
                    .collect(),
            )
        }
    }
}
