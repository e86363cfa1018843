//! The configuration: items, the whole of it, parameter types.

pub mod items;
pub(crate) mod masked;
pub mod parameter_types;
pub mod show;
pub mod transfer;

use serde_json::{Value, json};

use crate::client::{Call, Http, Result};
use crate::fields::list;

/// Most bytes of items in one request, so that a message holds it; a single item may have more.
const TOGETHER: usize = 4 << 20;
/// Items sent together; the service takes 4,096.
const ITEMS: usize = 1000;

/// The value of one item, `None` when there is none.
pub(crate) async fn get_item(http: &Http, kind: &str, key: &str) -> Result<Option<String>> {
    let request = json!({"operation": "get", "keys": [{"type": kind, "key": key}]});
    let reply = http.service("config", request).await?;
    let value = list(&reply, "values")
        .first()
        .and_then(|item| item.get("value"));
    Ok(value.and_then(Value::as_str).map(str::to_owned))
}

/// Stores one item.
pub(crate) async fn put_item(http: &Http, kind: &str, key: &str, value: &str) -> Result<Value> {
    let values = json!([{"type": kind, "key": key, "value": value}]);
    let request = json!({"operation": "put", "values": values});
    http.service("config", request).await
}

/// Stores items, each with `type`, `key` and `value`, in their order and in as many requests as it takes. Those before
/// one that fails are stored.
pub(crate) async fn put_items(http: &Http, items: impl IntoIterator<Item = Value>) -> Result<()> {
    let (mut together, mut bytes) = (Vec::new(), 0);
    for item in items {
        let size = item.to_string().len();
        let full = bytes + size > TOGETHER || together.len() >= ITEMS;
        if full && !together.is_empty() {
            put_together(http, std::mem::take(&mut together)).await?;
            bytes = 0;
        }
        bytes += size;
        together.push(item);
    }
    match together.is_empty() {
        true => Ok(()),
        false => put_together(http, together).await,
    }
}

async fn put_together(http: &Http, items: Vec<Value>) -> Result<()> {
    let request = json!({"operation": "put", "values": items});
    http.service("config", request).await.map(drop)
}

/// Removes one item.
pub(crate) async fn delete_item(http: &Http, kind: &str, key: &str) -> Result<Value> {
    let request = json!({"operation": "delete", "keys": [{"type": kind, "key": key}]});
    http.service("config", request).await
}

/// The call that reads one item.
pub(crate) fn get_call(kind: &str, key: &str) -> Call {
    let request = json!({"operation": "get", "keys": [{"type": kind, "key": key}]});
    Call::global("config", request)
}

/// The JSON that the one item of a reply holds.
pub(crate) fn item_json(reply: &Value) -> Option<Value> {
    let value = list(reply, "values").first()?.get("value")?.as_str()?;
    serde_json::from_slice(value.as_bytes()).ok()
}
