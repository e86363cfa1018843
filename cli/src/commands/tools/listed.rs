//! `tg list-mcp-tools`: which tools an MCP server has, as it says.

use clap::Args;
use serde_json::{Value, json};

use crate::args::{InFlow, Options, subject};
use crate::client::Result;
use crate::fields::{list, text, yes_no};
use crate::layout::{Width, table};
use crate::registry::Command;
use crate::session::Session;

subject!(
    /// The server that is asked.
    ServerId,
    "Id of the server, as set by set-mcp-tool",
    short = 's',
    long = "server"
);

/// Arguments of `tg list-mcp-tools`.
#[derive(Debug, Args)]
pub struct ListMcpTools {
    #[command(flatten)]
    flow: InFlow,
    #[command(flatten)]
    server: ServerId,
}

impl Command for ListMcpTools {
    const NAME: &'static str = "list-mcp-tools";
    const ABOUT: &'static str = "List the tools that an MCP server has";

    fn options(&self) -> Options {
        Options::from(&self.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({"operation": "list-tools", "server": self.server.id()});
        let http = session.http()?;
        let reply = http.flow_service(&self.flow.flow_id, "mcp-tool", request);
        let reply = reply.await?;
        let tools = list(&reply, "tools").to_vec();
        let told = text(&reply, "text");
        if !told.is_empty() {
            session.out.talk(&told);
        }
        let shown = Value::from(tools.clone());
        session.out.lay(&shown, |width| render(&tools, width))
    }
}

fn render(tools: &[Value], width: Width) -> String {
    if tools.is_empty() {
        return "No tools.".to_owned();
    }
    let rows = tools.iter().map(|tool| {
        [
            text(tool, "name"),
            yes_no(tool["read-only"] != json!(true)),
            arguments(&tool["schema"]),
            text(tool, "description"),
        ]
    });
    table(["name", "writes", "arguments", "description"], rows, width)
}

/// Names of what it takes; what may be left out has a question mark.
fn arguments(schema: &Value) -> String {
    let required = list(schema, "required");
    let properties = schema["properties"].as_object();
    let names = properties.into_iter().flatten().map(|(name, _)| {
        match required.iter().any(|one| one == name.as_str()) {
            true => name.clone(),
            false => format!("{name}?"),
        }
    });
    names.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_a_table_that_says_which_write() {
        let schema = json!({"required": ["a"], "properties": {"a": {}, "b": {}}});
        let tools = [
            json!({"name": "sum", "description": "Adds.", "read-only": true, "schema": schema}),
            json!({"name": "pay", "description": "Pays.", "read-only": false}),
        ];
        let shown = render(&tools, None);
        let row = |name: &str| shown.lines().find(|line| line.contains(name)).unwrap();
        assert!(
            row("sum").contains("no") && row("sum").contains("a b?"),
            "{shown}"
        );
        assert!(
            row("pay").contains("yes") && row("pay").contains("Pays."),
            "{shown}"
        );
        assert_eq!(render(&[], None), "No tools.");
    }
}
