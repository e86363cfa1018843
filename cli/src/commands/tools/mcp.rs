//! `tg set-mcp-tool`, `show-mcp-tools`, `delete-mcp-tool` and `invoke-mcp-tool`.

use clap::Args;
use serde_json::{Value, json};

use super::items;
use crate::args::{Common, InFlow, Options, subject};
use crate::client::{Error, Result};
use crate::commands::config::{delete_item, get_item, put_item};
use crate::fields::{text, yes_no};
use crate::layout::{Width, record};
use crate::registry::Command;
use crate::session::Session;

/// Type of tools that call one.
pub(super) const MCP_TOOL: &str = "mcp-tool";

/// Whether a tool that calls an MCP tool says neither that it changes something nor that it does not.
pub(super) fn is_unsaid(tool: &Value) -> bool {
    let says = |key: &str| tool.get(key).and_then(Value::as_bool);
    says("writes").is_none() && says("read-only").is_none() && says("confirm") != Some(true)
}

/// What is said of that.
pub(super) fn unsaid(tool: &str) -> String {
    format!(
        "Warning: agents use the tool '{tool}' without asking, whatever it changes. Say --writes, --confirm or \
         --read-only with set-tool."
    )
}

/// Arguments of `tg set-mcp-tool`.
#[derive(Debug, Args)]
pub struct SetMcpTool {
    #[command(flatten)]
    common: Common,
    /// Id of the tool
    #[arg(short = 'i', long)]
    id: String,
    /// Name of the tool at its server [default: the id]
    #[arg(short = 'r', long, value_name = "NAME")]
    remote_name: Option<String>,
    /// All tools of the server, instead of one
    #[arg(long, conflicts_with = "remote_name")]
    all_tools: bool,
    /// Address of the MCP server
    #[arg(long, value_name = "URL", required_unless_present = "server")]
    tool_url: Option<String>,
    /// Program that is the MCP server, by its name in the settings of the system (tool.mcp_servers)
    #[arg(long, value_name = "NAME", conflicts_with_all = ["tool_url", "auth_token", "user_tokens"])]
    server: Option<String>,
    /// Bearer token for the MCP server
    #[arg(long, value_name = "TOKEN")]
    auth_token: Option<String>,
    /// Each user has a token for the MCP server: a configuration item of type mcp-user-token
    #[arg(long, conflicts_with = "auth_token")]
    user_tokens: bool,
    /// Roles of whom the tool is for, whoever's agent or program calls it [default: everybody]
    #[arg(long, num_args = 1.., value_name = "ROLE", value_parser = ["reader", "writer", "admin"])]
    roles: Option<Vec<String>>,
}

impl Command for SetMcpTool {
    const NAME: &'static str = "set-mcp-tool";
    const ABOUT: &'static str = "Register a tool of an MCP server";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut tool = json!({});
        if !self.all_tools {
            tool["remote-name"] = json!(self.remote_name.as_ref().unwrap_or(&self.id));
        }
        for (key, said) in [("url", &self.tool_url), ("server", &self.server)] {
            if let Some(said) = said {
                tool[key] = json!(said);
            }
        }
        if let Some(token) = &self.auth_token {
            tool["auth-token"] = json!(token);
        }
        if self.user_tokens {
            tool["user-tokens"] = json!(true);
        }
        if let Some(roles) = &self.roles {
            tool["roles"] = json!(roles);
        }
        let http = session.http()?;
        put_item(&http, "mcp", &self.id, &tool.to_string()).await?;
        // Only a warning is at stake: who may not read the tools of agents has set this one all the same.
        for (key, tool) in items(&http, "tool").await.unwrap_or_default() {
            let is_of_it = text(&tool, "mcp-tool") == self.id && text(&tool, "type") == MCP_TOOL;
            if is_of_it && is_unsaid(&tool) {
                session.out.talk(unsaid(&key));
            }
        }
        session.out.show(&json!({"id": self.id}), String::new)
    }
}

/// Arguments of `tg show-mcp-tools`.
#[derive(Debug, Args)]
pub struct ShowMcpTools {
    #[command(flatten)]
    common: Common,
}

impl Command for ShowMcpTools {
    const NAME: &'static str = "show-mcp-tools";
    const ABOUT: &'static str = "Show the registered MCP tools, never their tokens";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let tools: Vec<Value> = items(&session.http()?, "mcp")
            .await?
            .iter()
            .map(|(id, tool)| without_token(id, tool))
            .collect();
        session.out.lay(&Value::from(tools.as_slice()), |width| {
            render(&tools, width)
        })
    }
}

fn without_token(id: &str, tool: &Value) -> Value {
    let mut shown = json!({
        "id": id,
        "remote-name": text(tool, "remote-name"),
        "url": text(tool, "url"),
        "auth": !text(tool, "auth-token").is_empty(),
    });
    if tool.get("server").is_some() {
        shown["server"] = json!(text(tool, "server"));
    }
    if tool["user-tokens"] == json!(true) {
        shown["user-tokens"] = json!(true);
    }
    shown
}

fn render(tools: &[Value], width: Width) -> String {
    if tools.is_empty() {
        return "No MCP tools.".to_owned();
    }
    let shown: Vec<String> = tools
        .iter()
        .map(|tool| {
            let place = match tool.get("server") {
                Some(_) => ("server", text(tool, "server")),
                None => ("url", text(tool, "url")),
            };
            let auth = match tool["user-tokens"] == json!(true) {
                true => "by user".to_owned(),
                false => yes_no(tool["auth"] == json!(true)),
            };
            let rows = [
                ("id", text(tool, "id")),
                ("remote-name", text(tool, "remote-name")),
                place,
                ("auth", auth),
            ];
            record(&rows, width)
        })
        .collect();
    shown.join("\n\n")
}

subject!(
    /// The tool that goes.
    ToolId,
    "Id of the tool",
    short = 'i',
    long = "id"
);

subject!(
    /// The tool that is called.
    ToolName,
    "Id of the tool",
    short = 'n',
    long = "name"
);

/// Arguments of `tg delete-mcp-tool`.
#[derive(Debug, Args)]
pub struct DeleteMcpTool {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    tool: ToolId,
}

impl Command for DeleteMcpTool {
    const NAME: &'static str = "delete-mcp-tool";
    const ABOUT: &'static str = "Remove an MCP tool";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let http = session.http()?;
        let id = self.tool.id();
        if get_item(&http, "mcp", id).await?.is_none() {
            return Err(Error::Missing(format!("MCP tool '{id}' not found.")));
        }
        delete_item(&http, "mcp", id).await?;
        session.out.show(&json!({"id": id, "deleted": true}), || {
            format!("MCP tool '{id}' deleted successfully.")
        })
    }
}

/// Arguments of `tg invoke-mcp-tool`.
#[derive(Debug, Args)]
pub struct InvokeMcpTool {
    #[command(flatten)]
    flow: InFlow,
    #[command(flatten)]
    tool: ToolName,
    /// Id of the server whose tool it is; the name is then the tool's own
    #[arg(short = 's', long, value_name = "ID")]
    server: Option<String>,
    /// Parameters as a JSON object
    #[arg(
        short = 'P',
        long,
        value_name = "JSON",
        default_value = "{}",
        hide_default_value = true
    )]
    parameters: String,
}

impl Command for InvokeMcpTool {
    const NAME: &'static str = "invoke-mcp-tool";
    const ABOUT: &'static str = "Call an MCP tool";

    fn options(&self) -> Options {
        Options::from(&self.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let parameters: Value = serde_json::from_slice(self.parameters.as_bytes())
            .map_err(|error| Error::Usage(format!("--parameters is not JSON: {error}")))?;
        if !parameters.is_object() {
            return Err(Error::Usage("--parameters is not a JSON object".to_owned()));
        }
        let mut request = json!({"name": self.tool.id(), "parameters": parameters});
        if let Some(server) = &self.server {
            request["server"] = json!(server);
        }
        let reply = session
            .http()?
            .flow_service(&self.flow.flow_id, "mcp-tool", request)
            .await?;
        match (reply.get("text"), reply.get("object")) {
            (Some(Value::String(text)), _) if session.out.is_json() => {
                session.out.json(&json!({"text": text}))
            }
            (Some(Value::String(text)), _) => session.out.line(text),
            (_, Some(object)) => session.out.json(object),
            _ => Err(Error::Protocol("neither text nor object".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_never_shown() {
        let tool =
            json!({"remote-name": "calc", "url": "http://mcp.example", "auth-token": "s3cret"});
        let shown = without_token("calc", &tool);
        assert!(!shown.to_string().contains("s3cret"));
        assert!(render(&[shown], None).contains("| auth        | yes"));
        let own = json!({"remote-name": "calc", "url": "http://mcp.example", "user-tokens": true});
        let shown = without_token("calc", &own);
        assert!(render(&[shown], None).contains("| auth        | by user"));
    }
}
