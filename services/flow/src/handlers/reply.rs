//! Replies that say more than the contract's fields: JSON text in the one free text field.

use serde::Serialize;
use serde_json::{Map, Value, json};
use tg_schemas::msg::FlowResponse;

/// `{key: value}` as the reply's text.
pub(crate) fn with(key: &str, value: &impl Serialize) -> FlowResponse {
    let mut map = Map::new();
    map.insert(key.to_owned(), json!(value));
    text(&Value::Object(map))
}

/// JSON as the reply's text.
pub(crate) fn text(value: &Value) -> FlowResponse {
    FlowResponse {
        flow: value.to_string(),
        ..FlowResponse::default()
    }
}
