//! The tools an agent may use, and MCP tools behind them.

pub mod delete;
pub mod listed;
pub mod mcp;
pub mod server;
mod server_call;
pub mod set;
pub mod show;

use serde_json::{Value, json};

use crate::client::{Http, Result};
use crate::fields::{list, text};

/// The items of a configuration type with their ids; values that are not JSON are `Null`.
pub(crate) async fn items(http: &Http, kind: &str) -> Result<Vec<(String, Value)>> {
    let request = json!({"operation": "getvalues", "type": kind});
    let reply = http.all("config", request).await?;
    let item = |item: &Value| {
        let value = serde_json::from_slice(text(item, "value").as_bytes()).unwrap_or(Value::Null);
        (text(item, "key"), value)
    };
    Ok(list(&reply, "values").iter().map(item).collect())
}

/// Items as one JSON list, each with its id.
pub(crate) fn as_json(items: &[(String, Value)]) -> Value {
    let one = |(id, value): &(String, Value)| {
        let mut object = serde_json::Map::new();
        object.insert("id".to_owned(), json!(id));
        if let Value::Object(fields) = value {
            object.extend(fields.clone());
        }
        Value::Object(object)
    };
    items.iter().map(one).collect()
}
