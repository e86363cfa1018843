//! Tools behind the `mcp-tool` processor: MCP servers, and what it has built in.

use tg_schemas::Error;
use tg_schemas::msg::ToolRequest;
use tg_schemas::processors::agent_manager::{IMAGE_TO_TEXT, MCP_TOOL};

use super::picture;
use super::tool_call::{Arguments, Call, Output};
use crate::error::AgentError;

/// Built-in arithmetic.
pub(super) const CALCULATOR: &str = "builtin:calculator";
/// Built-in clock.
pub(super) const CURRENT_DATETIME: &str = "builtin:current_datetime";
/// Built-in search of Wikipedia.
pub(super) const WIKIPEDIA_SEARCH: &str = "builtin:wikipedia_search";
/// Built-in summary of one of its pages.
pub(super) const WIKIPEDIA_SUMMARY: &str = "builtin:wikipedia_summary";

pub(super) async fn call(
    call: &Call<'_>,
    name: &str,
    arguments: &Arguments,
) -> Result<Output, Error> {
    call_at(call, ("", name), arguments).await
}

/// Calls a tool of a server; of one without a name, `name` is the key.
pub(super) async fn call_at(
    call: &Call<'_>,
    (server, name): (&str, &str),
    arguments: &Arguments,
) -> Result<Output, Error> {
    let request = ToolRequest {
        name: name.to_owned(),
        parameters: serde_json::to_string(arguments).map_err(AgentError::from)?,
        server: server.to_owned(),
        pictures: call.cx.has(IMAGE_TO_TEXT),
        caller_depth: call.caller_depth,
        ..ToolRequest::default()
    };
    let mut ask = call.cx.ask_options();
    ask.id = Some(call.key.clone());
    // The answer does not say what it took of models: that counts for key and workspace where they are asked.
    ask.counted = None;
    let answer = call.cx.ask_with(MCP_TOOL, &request, ask)?;
    let response = answer.last().await?;
    let text = if response.text.is_empty() {
        response.object
    } else {
        response.text
    };
    Ok(picture::described(call, text, response.pictures).await)
}
