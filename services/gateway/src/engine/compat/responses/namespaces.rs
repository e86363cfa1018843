//! Groups of tools that have a name in common: Codex sends the tools of each MCP server as one. A model is offered each tool under a
//! name that begins with that of its group, and a call is answered with the two apart.

use serde_json::Value;
use tg_schemas::Error;

use super::custom;
use crate::engine::translate::Fields;

/// The type of a group.
const KIND: &str = "namespace";
/// What parts the name of a group from that of its tool, unless the group's ends so.
const BETWEEN: &str = "__";

/// Whether the client runs tools of a type itself.
pub(super) fn is_run_by_client(kind: &Value) -> bool {
    kind == "function" || kind == custom::KIND
}

/// Whether a tool of a type is a group, with tools that its client runs.
pub(super) fn is_group(kind: Option<&Value>, members: Option<&Value>) -> bool {
    let members = members.and_then(Value::as_array);
    let mut members = members.into_iter().flatten();
    kind.is_some_and(|kind| kind == KIND) && members.any(|member| is_run_by_client(&member["type"]))
}

/// The name under which a model is offered a tool of a group.
pub(super) fn joined(group: &str, name: &str) -> String {
    match group.is_empty() || group.ends_with(BETWEEN) {
        true => format!("{group}{name}"),
        false => format!("{group}{BETWEEN}{name}"),
    }
}

/// The name under which a model knows the tool of a call.
///
/// # Errors
/// `bad-request`, with the field that is missing or wrong.
pub(super) fn name_of(call: &Fields<'_>) -> Result<String, Error> {
    let name = call.required_text("name")?;
    let group = call.opt_text("namespace")?.unwrap_or_default();
    Ok(joined(&group, &name))
}

/// Of a tool, or of one in a group, the group's name and the tool itself, if a model knows it by this name.
pub(super) fn named<'a>(tool: &'a Value, name: &Value) -> Option<(Option<&'a Value>, &'a Value)> {
    if tool["type"] != KIND {
        return (tool["name"] == *name).then_some((None, tool));
    }
    let text = |of: &'a Value| of["name"].as_str().unwrap_or_default();
    let mut members = tool["tools"].as_array().into_iter().flatten();
    members.find_map(|member| {
        let known = joined(text(tool), text(member));
        (*name == known).then_some((Some(&tool["name"]), member))
    })
}
