//! `tg show-tools`: the tools of a workspace.

use clap::Args;
use serde_json::Value;

use super::{as_json, items};
use crate::args::{Common, Options};
use crate::client::Result;
use crate::fields::{list, text, texts};
use crate::layout::{Width, record};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg show-tools`.
#[derive(Debug, Args)]
pub struct ShowTools {
    #[command(flatten)]
    common: Common,
}

impl Command for ShowTools {
    const NAME: &'static str = "show-tools";
    const ABOUT: &'static str = "Show the tools that agents may use";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let tools = items(&session.http()?, "tool").await?;
        session
            .out
            .lay(&as_json(&tools), |width| render(&tools, width))
    }
}

fn render(tools: &[(String, Value)], width: Width) -> String {
    if tools.is_empty() {
        return "No tools.".to_owned();
    }
    let shown: Vec<String> = tools
        .iter()
        .map(|(id, tool)| render_tool(id, tool, width))
        .collect();
    shown.join("\n\n")
}

fn render_tool(id: &str, tool: &Value, width: Width) -> String {
    let mut rows = vec![
        ("id".to_owned(), id.to_owned()),
        ("name".to_owned(), text(tool, "name")),
        ("description".to_owned(), text(tool, "description")),
        ("type".to_owned(), text(tool, "type")),
    ];
    let details = [
        "mcp-tool",
        "mcp",
        "service",
        "collection",
        "schema-name",
        "index-name",
        "limit",
        "template",
        "max-concurrent",
        "async",
        "progress-updates",
        "timeout",
    ];
    for key in details.into_iter().filter(|key| tool.get(*key).is_some()) {
        rows.push((key.to_owned(), text(tool, key)));
    }
    for (number, argument) in list(tool, "arguments").iter().enumerate() {
        let shown = format!(
            "{}: {}\n{}",
            text(argument, "name"),
            text(argument, "type"),
            text(argument, "description")
        );
        rows.push((format!("arg {number}"), shown));
    }
    if tool.get("group").is_some() {
        rows.push(("groups".to_owned(), or(texts(tool, "group"), "(none)")));
    }
    if tool.get("roles").is_some() {
        rows.push(("roles".to_owned(), or(texts(tool, "roles"), "(nobody)")));
    }
    if tool.get("tools").is_some() {
        rows.push(("tools".to_owned(), or(texts(tool, "tools"), "(none)")));
    }
    let is = |key: &str| tool.get(key).and_then(Value::as_bool) == Some(true);
    for (key, name) in [
        ("writes", "writes"),
        ("read-only", "changes nothing"),
        ("confirm", "asks first"),
        ("poll", "poll"),
    ] {
        if is(key) {
            rows.push((name.to_owned(), "yes".to_owned()));
        }
    }
    if tool.get("state").is_some() {
        rows.push(("next state".to_owned(), text(tool, "state")));
    }
    if tool.get("applicable-states").is_some() {
        let states = texts(tool, "applicable-states");
        let shown = match states.iter().any(|state| state == "*") {
            true => "all states".to_owned(),
            false => or(states, "(never)"),
        };
        rows.push(("available in".to_owned(), shown));
    }
    let rows: Vec<(&str, String)> = rows
        .iter()
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect();
    record(&rows, width)
}

fn or(items: Vec<String>, absent: &str) -> String {
    match items.is_empty() {
        true => absent.to_owned(),
        false => items.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_groups_and_states_are_shown() {
        let tool = json!({"name": "calc", "description": "d", "type": "mcp-tool",
            "mcp-tool": "calculator", "group": [], "applicable-states": ["*"], "state": "done",
            "arguments": [{"name": "x", "type": "number", "description": "A number"}]});
        let shown = render(&[("t1".to_owned(), tool)], None);
        for part in [
            "arg 0",
            "x: number",
            "A number",
            "(none)",
            "all states",
            "done",
            "calculator",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }
}
