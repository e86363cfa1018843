//! The prompt service.

use std::collections::BTreeMap;

use serde_json::Value;
pub use tg_clients::prompt::{Prompts, Spent};
use tg_mesh::Cx;
use tg_schemas::Error;

use crate::error::RagError;

/// Asks for one JSON value by a prompt.
pub async fn object(
    cx: &Cx,
    prompt: &str,
    terms: BTreeMap<String, String>,
) -> Result<Value, Error> {
    let reply = Prompts::of_flow(cx).whole(prompt, terms).await?;
    let value = serde_json::from_slice(reply.text.trim().as_bytes());
    Ok(value.map_err(|_| RagError::NotJson(prompt.to_owned()))?)
}
