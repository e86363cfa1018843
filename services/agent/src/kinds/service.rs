//! Tools behind a queue of the workspace that speaks the tool-service protocol.

use serde_json::{Map, Value};
use tg_schemas::msg::{ToolServiceRequest, ToolServiceResponse};
use tg_schemas::{Error, Topic};

use super::tool_call::{Arguments, Call, Output};
use crate::error::AgentError;

pub(super) async fn call(
    call: &Call<'_>,
    request: &str,
    config: &Map<String, Value>,
    arguments: &Arguments,
) -> Result<Output, Error> {
    let json = |map: &Map<String, Value>| serde_json::to_string(map).map_err(AgentError::from);
    let question = ToolServiceRequest {
        config: json(config)?,
        arguments: json(arguments)?,
        caller_depth: call.caller_depth,
    };
    let topic = Topic::parse(request)?;
    let mut ask = call.cx.ask_options();
    ask.id = Some(call.key.clone());
    // The answer does not say what it took of models: that counts for key and workspace where they are asked.
    ask.counted = None;
    let mut answer = call
        .cx
        .mesh
        .ask::<_, ToolServiceResponse>(&topic, &question, ask);
    let mut text = String::new();
    while let Some(part) = answer.next().await {
        let part = part?;
        if let Some(error) = part.error {
            return Err(error);
        }
        text.push_str(&part.response);
    }
    Ok(text.into())
}
