//! JSON values as template values. Objects keep the order of their keys.

use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectExt, Value};
use serde_json::Map;

#[derive(Debug)]
struct Row(Map<String, serde_json::Value>);

impl Object for Row {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.get(key.as_str()?).map(of)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        self.mapped_enumerator(|row| Box::new(row.0.keys().map(|key| Value::from(key.as_str()))))
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.0.len())
    }
}

/// An object of JSON values.
pub(super) fn of_map(map: Map<String, serde_json::Value>) -> Value {
    Value::from_object(Row(map))
}

/// A JSON value.
pub(super) fn of(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(flag) => Value::from(*flag),
        serde_json::Value::Number(number) => number
            .as_i64()
            .map(Value::from)
            .or_else(|| number.as_u64().map(Value::from))
            .or_else(|| number.as_f64().map(Value::from))
            .unwrap_or_default(),
        serde_json::Value::String(text) => Value::from(text.as_str()),
        serde_json::Value::Array(items) => items.iter().map(of).collect(),
        serde_json::Value::Object(map) => of_map(map.clone()),
    }
}
