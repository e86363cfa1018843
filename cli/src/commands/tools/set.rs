//! `tg set-tool`: defines a tool for agents. What a tool type needs is checked here, because one
//! bad tool can spoil the whole set.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::mcp::{MCP_TOOL, is_unsaid, unsaid};
use crate::args::{Common, Options};
use crate::client::{Error, Result};
use crate::commands::config::put_item;
use crate::registry::Command;
use crate::session::Session;

/// What a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Asks the knowledge graph
    KnowledgeQuery,
    /// Asks structured data in plain language
    StructuredQuery,
    /// Finds rows by meaning
    RowEmbeddingsQuery,
    /// Asks the model
    TextCompletion,
    /// Calls an MCP tool
    McpTool,
    /// All tools that an MCP server has
    McpServer,
    /// Runs a prompt
    Prompt,
    /// Gives work to another agent
    Delegate,
    /// Gives tasks that depend on each other to other agents
    Dispatch,
}

impl Kind {
    fn wire(self) -> &'static str {
        match self {
            Self::KnowledgeQuery => "knowledge-query",
            Self::StructuredQuery => "structured-query",
            Self::RowEmbeddingsQuery => "row-embeddings-query",
            Self::TextCompletion => "text-completion",
            Self::McpTool => MCP_TOOL,
            Self::McpServer => "mcp-server",
            Self::Prompt => "prompt",
            Self::Delegate => "delegate",
            Self::Dispatch => "dispatch",
        }
    }
}

/// Arguments of `tg set-tool`.
#[derive(Debug, Args)]
pub struct SetTool {
    #[command(flatten)]
    common: Common,
    /// Id of the tool
    #[arg(long)]
    id: String,
    /// Name by which agents call it, e.g. `get_weather`
    #[arg(long)]
    name: String,
    /// What it does, for the model to read
    #[arg(long, default_value = "")]
    description: String,
    /// What kind of tool it is
    #[arg(long = "type", value_enum)]
    kind: Kind,
    /// MCP tool to call, as set by set-mcp-tool
    #[arg(long, value_name = "ID", required_if_eq("kind", "mcp-tool"))]
    mcp_tool: Option<String>,
    /// MCP server whose tools are meant, as set by set-mcp-tool
    #[arg(long, value_name = "ID", required_if_eq("kind", "mcp-server"))]
    mcp: Option<String>,
    /// Those of its tools that are meant [default: all]
    #[arg(long, num_args = 1.., value_name = "NAME")]
    tools: Option<Vec<String>>,
    /// Collection to query
    #[arg(long, value_name = "ID")]
    collection: Option<String>,
    /// Schema to search within
    #[arg(
        long,
        value_name = "NAME",
        required_if_eq("kind", "row-embeddings-query")
    )]
    schema_name: Option<String>,
    /// Index to search within
    #[arg(long, value_name = "NAME")]
    index_name: Option<String>,
    /// Maximum number of rows
    #[arg(long, value_name = "COUNT")]
    limit: Option<u32>,
    /// Tasks that a dispatch has going on at the same time; 5 unless it says so
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=16))]
    max_concurrent: Option<u32>,
    /// A dispatch answers at once; the result is announced in the session
    #[arg(long = "async")]
    at_once: bool,
    /// With --async: notify the session of each task that ends
    #[arg(long, requires = "at_once")]
    progress_updates: bool,
    /// Prompt to run
    #[arg(long, value_name = "ID", required_if_eq("kind", "prompt"))]
    template: Option<String>,
    /// Arguments, each as name:type:description with type string or number
    #[arg(long, num_args = 0.., value_name = "NAME:TYPE:DESCRIPTION")]
    argument: Vec<String>,
    /// Groups the tool belongs to
    #[arg(long, num_args = 0..)]
    group: Option<Vec<String>>,
    /// State the agent is in after the tool ran
    #[arg(long)]
    state: Option<String>,
    /// States in which the tool is offered
    #[arg(long, num_args = 0..)]
    applicable_states: Option<Vec<String>>,
    /// Roles of whom the tool is for [default: everybody]
    #[arg(long, num_args = 1.., value_name = "ROLE", value_parser = ["reader", "writer", "admin"])]
    roles: Option<Vec<String>>,
    /// Ask the user before the tool is used
    #[arg(long)]
    confirm: bool,
    /// The tool changes something: without --confirm it is used only where the request or its key grants it
    #[arg(long)]
    writes: bool,
    /// The tool changes nothing
    #[arg(long, conflicts_with_all = ["writes", "confirm"])]
    read_only: bool,
    /// The tool is a poll: repeated too soon, it is not used, and its last result stands
    #[arg(long)]
    poll: bool,
    /// Seconds that a call may take
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    tool_timeout: Option<u64>,
}

impl Command for SetTool {
    const NAME: &'static str = "set-tool";
    const ABOUT: &'static str = "Define a tool for agents";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let tool = self.definition()?;
        let http = session.http()?;
        put_item(&http, "tool", &self.id, &tool.to_string()).await?;
        if self.kind == Kind::McpTool && is_unsaid(&tool) {
            session.out.talk(unsaid(&self.id));
        }
        session.out.show(&tool, || "Tool set.".to_owned())
    }
}

impl SetTool {
    fn definition(&self) -> Result<Value> {
        let mut tool = json!({
            "name": self.name,
            "description": self.description,
            "type": self.kind.wire(),
        });
        let texts = [
            ("mcp-tool", &self.mcp_tool),
            ("mcp", &self.mcp),
            ("collection", &self.collection),
            ("template", &self.template),
            ("schema-name", &self.schema_name),
            ("index-name", &self.index_name),
            ("state", &self.state),
        ];
        for (key, value) in texts {
            if let Some(value) = value {
                tool[key] = json!(value);
            }
        }
        if let Some(limit) = self.limit {
            tool["limit"] = json!(limit);
        }
        if let Some(most) = self.max_concurrent {
            tool["max-concurrent"] = json!(most);
        }
        if !self.argument.is_empty() {
            let arguments: Result<Vec<Value>> =
                self.argument.iter().map(|text| argument(text)).collect();
            tool["arguments"] = Value::from(arguments?);
        } else if self.kind == Kind::Prompt || self.kind == Kind::McpTool {
            tool["arguments"] = json!([]);
        }
        if let Some(groups) = &self.group {
            tool["group"] = json!(groups);
        }
        if let Some(states) = &self.applicable_states {
            tool["applicable-states"] = json!(states);
        }
        if let Some(roles) = &self.roles {
            tool["roles"] = json!(roles);
        }
        let flags = [
            ("confirm", self.confirm),
            ("writes", self.writes),
            ("poll", self.poll),
            ("async", self.at_once),
            ("progress-updates", self.progress_updates),
        ];
        for (key, said) in flags {
            if said {
                tool[key] = json!(true);
            }
        }
        if self.read_only {
            tool["read-only"] = json!(true);
            if self.kind == Kind::McpServer {
                tool["writes"] = json!(false);
            }
        }
        if let Some(tools) = &self.tools {
            tool["tools"] = json!(tools);
        }
        if let Some(timeout) = self.tool_timeout {
            tool["timeout"] = json!(timeout);
        }
        Ok(tool)
    }
}

/// `name:type:description`; the description may hold colons.
fn argument(text: &str) -> Result<Value> {
    let mut parts = text.splitn(3, ':');
    let (Some(name), Some(kind), Some(description)) = (parts.next(), parts.next(), parts.next())
    else {
        return Err(Error::Usage(format!(
            "--argument {text}: must be name:type:description"
        )));
    };
    if kind != "string" && kind != "number" {
        return Err(Error::Usage(format!(
            "--argument {text}: type must be string or number"
        )));
    }
    Ok(json!({"name": name, "type": kind, "description": description}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::ErrorKind;
    use clap::{Command as Clap, FromArgMatches};

    fn parse(arguments: &[&str]) -> Result<SetTool, clap::Error> {
        let command = SetTool::augment_args(Clap::new("set-tool"));
        let argv = std::iter::once("set-tool").chain(arguments.iter().copied());
        SetTool::from_arg_matches(&command.try_get_matches_from(argv)?)
    }

    #[test]
    fn only_what_was_given_is_stored() {
        let tool = parse(&[
            "--id",
            "w",
            "--name",
            "get_weather",
            "--type",
            "prompt",
            "--template",
            "weather",
            "--argument",
            "place:string:Where: a town",
            "days:number:How many",
            "--group",
            "a",
            "b",
            "--roles",
            "writer",
            "admin",
            "--confirm",
            "--writes",
            "--poll",
            "--tool-timeout",
            "30",
        ])
        .expect("parsed");
        assert_eq!(
            tool.definition().expect("defined"),
            json!({
                "name": "get_weather", "description": "", "type": "prompt", "template": "weather",
                "arguments": [
                    {"name": "place", "type": "string", "description": "Where: a town"},
                    {"name": "days", "type": "number", "description": "How many"},
                ],
                "group": ["a", "b"], "roles": ["writer", "admin"], "confirm": true, "writes": true, "poll": true,
                "timeout": 30,
            })
        );
    }

    #[test]
    fn a_tool_that_gives_work_to_agents_says_how_much_at_once() {
        let given = [
            "--id",
            "d",
            "--name",
            "dispatch",
            "--type",
            "dispatch",
            "--max-concurrent",
            "3",
        ];
        let tool = parse(&given)
            .expect("parsed")
            .definition()
            .expect("defined");
        let expected =
            json!({"name": "dispatch", "description": "", "type": "dispatch", "max-concurrent": 3});
        assert_eq!(tool, expected);
        let at_once = [&given[..6], &["--async", "--progress-updates"]].concat();
        let tool = parse(&at_once).expect("parsed");
        let tool = tool.definition().expect("defined");
        assert_eq!(
            (&tool["async"], &tool["progress-updates"]),
            (&json!(true), &json!(true))
        );
        let alone = [&given[..6], &["--progress-updates"]].concat();
        assert_eq!(
            parse(&alone).unwrap_err().kind(),
            ErrorKind::MissingRequiredArgument
        );
        let far = [&given[..7], &["17"]].concat();
        assert_eq!(parse(&far).unwrap_err().kind(), ErrorKind::ValueValidation);
    }

    #[test]
    fn an_mcp_tool_says_whether_it_changes_something() {
        let tool = [
            "--id",
            "t",
            "--name",
            "t",
            "--type",
            "mcp-tool",
            "--mcp-tool",
            "m",
        ];
        let defined = |more: &[&str]| {
            let arguments = [&tool[..], more].concat();
            parse(&arguments)
                .expect("parsed")
                .definition()
                .expect("defined")
        };
        assert!(is_unsaid(&defined(&[])) && is_unsaid(&defined(&["--poll"])));
        for said in ["--writes", "--confirm", "--read-only"] {
            assert!(!is_unsaid(&defined(&[said])), "{said}");
        }
        let both = [&tool[..], &["--writes", "--read-only"]].concat();
        assert_eq!(
            parse(&both).unwrap_err().kind(),
            ErrorKind::ArgumentConflict
        );
        assert!(unsaid("t").contains("'t'"));
    }

    #[test]
    fn all_tools_of_a_server_are_one_row() {
        let given = [
            "--id",
            "s",
            "--name",
            "s",
            "--type",
            "mcp-server",
            "--mcp",
            "m",
            "--tools",
            "a",
            "b",
        ];
        let row = parse(&[&given[..], &["--read-only"]].concat()).expect("parsed");
        let expected = json!({"name": "s", "description": "", "type": "mcp-server", "mcp": "m",
            "tools": ["a", "b"], "read-only": true, "writes": false});
        assert_eq!(row.definition().expect("defined"), expected);
        let missing = parse(&given[..6]).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::MissingRequiredArgument);
    }

    #[test]
    fn a_type_without_what_it_needs_is_refused() {
        let refused = |kind: &str| {
            let arguments = ["--id", "w", "--name", "n", "--type", kind];
            parse(&arguments).map(|_| ()).unwrap_err()
        };
        let missing = refused("mcp-tool");
        assert_eq!(missing.kind(), ErrorKind::MissingRequiredArgument);
        assert!(missing.to_string().contains("--mcp-tool <ID>"), "{missing}");
        let unknown = refused("nonsense");
        assert_eq!(unknown.kind(), ErrorKind::InvalidValue);
        assert!(unknown.to_string().contains("'nonsense'"), "{unknown}");
        for (text, why) in [
            ("a:integer:b", "type must be string or number"),
            ("a:number", "must be name:type:description"),
        ] {
            let Err(Error::Usage(told)) = argument(text) else {
                panic!("{text} is refused");
            };
            assert_eq!(told, format!("--argument {text}: {why}"));
        }
    }
}
