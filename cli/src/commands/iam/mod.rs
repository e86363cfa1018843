//! Who may do what: the first key, users, passwords and tokens, groups and grants, workspaces, API keys; who did what; and
//! whether workspaces are walls.

pub mod api_keys;
pub mod audit;
pub mod bootstrap;
pub mod grants;
pub mod groups;
pub mod isolation;
pub mod login;
mod named;
pub mod passwords;
pub mod users;
pub mod whoami;
pub mod workspaces;

use clap::builder::BoolishValueParser;
use serde_json::{Value, json};

use crate::client::{Error, Result};

/// What the service tells as JSON in text.
fn embedded(reply: &Value, key: &str) -> Result<Value> {
    let text = reply.get(key).and_then(Value::as_str);
    let value = text.and_then(|text| serde_json::from_slice(text.as_bytes()).ok());
    value.ok_or_else(|| Error::Protocol(format!("no {key}")))
}

/// A flag as the official commands take it.
fn yes_or_no() -> BoolishValueParser {
    BoolishValueParser::new()
}

/// A request about a workspace, if one is named; else about the caller's.
fn in_workspace(mut request: Value, workspace: Option<String>) -> Value {
    if let Some(workspace) = workspace {
        request["workspace"] = json!(workspace);
    }
    request
}
