//! One row of tool configuration.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use tg_schemas::{Class, Topic};

use super::discovered;
use super::knowledge::Knowledge;
use super::tool::{Kind, Rows, Tool};
use crate::engine::arguments::{self, Argument};
use crate::engine::delegating::Roster;
use crate::engine::guards::detectors::is_poll;

/// Tasks of a graph that go on at the same time.
const CONCURRENT: usize = 5;
/// The same at most.
const MAX_CONCURRENT: usize = 16;
/// Longest time that a row gives its tool, in seconds.
const MAX_TIMEOUT: u64 = 3600;

#[derive(Deserialize)]
struct Row {
    #[serde(default)]
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    group: Option<Vec<String>>,
    #[serde(default)]
    state: Option<String>,
    #[serde(default, rename = "applicable-states")]
    applicable: Option<Vec<String>>,
    #[serde(default)]
    arguments: Vec<ArgumentRow>,
    #[serde(default)]
    collection: Option<String>,
    #[serde(default)]
    template: String,
    #[serde(default, rename = "mcp-tool")]
    mcp_tool: String,
    #[serde(default)]
    idempotent: bool,
    #[serde(default)]
    poll: bool,
    #[serde(default)]
    roles: Option<Vec<String>>,
    #[serde(default)]
    confirm: bool,
    #[serde(default)]
    writes: Option<bool>,
    /// Of a server of tools: its key in config type `mcp`.
    #[serde(default)]
    mcp: String,
    /// Of a server of tools: those that are meant.
    #[serde(default)]
    tools: Option<Vec<String>>,
    #[serde(default)]
    timeout: Option<u64>,
    #[serde(default)]
    service: String,
    #[serde(default, rename = "schema-name")]
    schema: String,
    #[serde(default, rename = "index-name")]
    index: Option<String>,
    #[serde(default)]
    limit: Option<i64>,
    #[serde(default, rename = "max-concurrent")]
    concurrent: Option<usize>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Deserialize)]
struct ArgumentRow {
    name: String,
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    required: Option<bool>,
}

#[derive(Deserialize)]
struct ServiceRow {
    #[serde(default, rename = "request-queue")]
    request: String,
    #[serde(default, rename = "config-params")]
    params: Vec<Param>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Param {
    Named {
        name: String,
        #[serde(default)]
        required: bool,
    },
    Plain(String),
}

/// What a row describes.
pub(super) enum Described {
    /// A tool.
    One(Box<Tool>),
    /// All tools of a server.
    Server(Box<discovered::Of>),
}

/// The server of tools that a row names, if that is what it is.
pub(super) fn server(value: &str) -> Option<String> {
    let row: Row = serde_json::from_slice(value.as_bytes()).ok()?;
    is_server(&row.r#type).then_some(row.mcp)
}

fn is_server(kind: &str) -> bool {
    kind.replace('_', "-") == "mcp-server"
}

/// Reads a row; a native one has its key as name and type unless it says otherwise.
pub(super) fn read(
    (key, value): (&str, &str),
    native: bool,
    rows: &Rows<'_>,
    agents: &Arc<Roster>,
) -> Result<Described, String> {
    let row: Row = serde_json::from_slice(value.as_bytes()).map_err(|error| error.to_string())?;
    let written = if native && row.r#type.is_empty() {
        key
    } else {
        &row.r#type
    };
    if is_server(written) {
        let of = discovered::Of {
            server: needed(&row.mcp, "mcp")?,
            only: row.tools.clone(),
            writes: row.writes,
            like: tool(key, row, Kind::TextCompletion)?,
        };
        return Ok(Described::Server(Box::new(of)));
    }
    let kind = kind(written, native, &row, rows, agents)?;
    Ok(Described::One(Box::new(tool(key, row, kind)?)))
}

fn tool(key: &str, row: Row, kind: Kind) -> Result<Tool, String> {
    let name = if row.name.trim().is_empty() {
        key
    } else {
        row.name.trim()
    };
    if name.contains(['\n', '\r']) {
        return Err("name: must be one line".to_owned());
    }
    let arguments = match fixed_arguments(&kind) {
        Some(fixed) => fixed,
        None => row
            .arguments
            .iter()
            .map(argument)
            .collect::<Result<_, _>>()?,
    };
    let timeout = match row.timeout {
        Some(seconds) if !(1..=MAX_TIMEOUT).contains(&seconds) => {
            return Err(format!("timeout: must be 1 to {MAX_TIMEOUT} seconds"));
        }
        seconds => seconds.map(Duration::from_secs),
    };
    Ok(Tool {
        name: name.to_owned(),
        description: row.description,
        kind,
        arguments,
        poll: is_poll(name, row.poll),
        backs_off: row.poll,
        timeout,
        confirm: row.confirm,
        writes: row.writes == Some(true),
        roles: row.roles,
        collection: row.collection.filter(|text| !text.is_empty()),
        groups: row.group.unwrap_or_else(|| vec!["default".to_owned()]),
        state: row.state.filter(|text| !text.is_empty()),
        applicable: row.applicable.unwrap_or_else(|| vec!["*".to_owned()]),
    })
}

fn kind(
    written: &str,
    native: bool,
    row: &Row,
    rows: &Rows<'_>,
    agents: &Arc<Roster>,
) -> Result<Kind, String> {
    let kind = match written.replace('_', "-").as_str() {
        "text-completion" => Kind::TextCompletion,
        "prompt" => Kind::Prompt {
            template: needed(&row.template, "template")?,
        },
        "mcp-tool" => Kind::Mcp {
            server: None,
            name: needed(&row.mcp_tool, "mcp-tool")?,
            repeatable: row.idempotent,
        },
        "tool-service" => service(row, rows)?,
        "knowledge-query" => Kind::KnowledgeQuery,
        "document-query" => Kind::DocumentQuery,
        "structured-query" => Kind::StructuredQuery,
        "row-embeddings-query" => Kind::RowEmbeddingsQuery {
            schema: needed(&row.schema, "schema-name")?,
            index: row.index.clone(),
            limit: row.limit.unwrap_or(10),
        },
        "delegate" => Kind::Delegate {
            agents: agents.clone(),
        },
        "dispatch" => Kind::Dispatch {
            agents: agents.clone(),
            concurrent: match row.concurrent.unwrap_or(CONCURRENT) {
                number @ 1..=MAX_CONCURRENT => number,
                _ => return Err(format!("max-concurrent: must be 1 to {MAX_CONCURRENT}")),
            },
            r#async: flag(row, "async")?,
            progress: flag(row, "progress-updates")?,
        },
        "calculator" if native => Kind::Calculator,
        "current-datetime" if native => Kind::CurrentDatetime,
        "wikipedia-search" if native => Kind::WikipediaSearch,
        "wikipedia-summary" if native => Kind::WikipediaSummary,
        "rag-query" if native => Kind::RagQuery,
        "image-to-text" if native => Kind::ImageToText,
        "graph-about" if native => Kind::GraphAbout,
        "graph-pattern" if native => Kind::GraphPattern,
        "graph-sparql" if native => Kind::GraphSparql,
        other => match Knowledge::named(other).filter(|_| native) {
            Some(which) => Kind::Knowledge(which),
            None => return Err(format!("type: '{other}' is not known")),
        },
    };
    Ok(kind)
}

/// A field that rows of other tools may have for themselves.
fn flag(row: &Row, field: &str) -> Result<bool, String> {
    match row.others.get(field) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(format!("{field}: must be true or false")),
    }
}

fn needed(text: &str, field: &str) -> Result<String, String> {
    match text.is_empty() {
        true => Err(format!("{field}: is required")),
        false => Ok(text.to_owned()),
    }
}

/// A service is reached only on a question topic of the tool's own workspace.
fn service(row: &Row, rows: &Rows<'_>) -> Result<Kind, String> {
    let value = rows
        .services
        .iter()
        .find(|(key, _)| *key == row.service)
        .ok_or_else(|| format!("service: there is no tool-service '{}'", row.service))?
        .1;
    let service: ServiceRow = serde_json::from_slice(value.as_bytes())
        .map_err(|error| format!("tool-service '{}': {error}", row.service))?;
    let outside = || {
        format!(
            "tool-service '{}': request-queue: must be request:tg:tool-<name>:{} or below",
            row.service, rows.workspace
        )
    };
    let topic = Topic::parse(&service.request).map_err(|_| outside())?;
    let mut parts = topic.name().split(':');
    let base_fits = parts.next().is_some_and(|base| base.starts_with("tool-"));
    if topic.class() != Class::Request || !base_fits || parts.next() != Some(rows.workspace) {
        return Err(outside());
    }
    let mut config = Map::new();
    for param in &service.params {
        let (name, required) = match param {
            Param::Named { name, required } => (name, *required),
            Param::Plain(name) => (name, false),
        };
        match row.others.get(name) {
            Some(value) => {
                config.insert(name.clone(), value.clone());
            }
            None if required => return Err(format!("{name}: is required")),
            None => {}
        }
    }
    Ok(Kind::ToolService {
        request: topic.to_string(),
        config,
        repeatable: row.idempotent,
    })
}

fn argument(row: &ArgumentRow) -> Result<Argument, String> {
    Ok(Argument {
        name: row.name.clone(),
        kind: arguments::Kind::parse(&row.r#type)
            .ok_or_else(|| format!("arguments.{}.type: '{}' is not known", row.name, row.r#type))?,
        description: row.description.clone(),
        required: row.required.unwrap_or(true),
    })
}

/// Kinds whose arguments configuration cannot change.
fn fixed_arguments(kind: &Kind) -> Option<Vec<Argument>> {
    let one = |name: &str, kind, description: &str, required| Argument {
        name: name.to_owned(),
        kind,
        description: description.to_owned(),
        required,
    };
    let text =
        |name, description, required| one(name, arguments::Kind::String, description, required);
    let limit = |what| {
        let description = format!("Most {what} to return");
        one("limit", arguments::Kind::Integer, &description, false)
    };
    Some(match kind {
        Kind::TextCompletion
        | Kind::KnowledgeQuery
        | Kind::DocumentQuery
        | Kind::StructuredQuery => vec![text("question", "The question to ask", true)],
        Kind::RowEmbeddingsQuery { .. } => vec![text("query", "What to look for", true)],
        Kind::RagQuery => vec![
            text("query", "What to look for", true),
            text(
                "index",
                "Leave it out. Only a request that allows several collections needs one of them here",
                false,
            ),
            one(
                "top_k",
                arguments::Kind::Integer,
                "Most passages to return",
                false,
            ),
        ],
        Kind::Knowledge(which) => which.arguments(),
        Kind::Calculator => vec![text(
            "expression",
            "The expression, such as (2 + 3) * 4",
            true,
        )],
        Kind::CurrentDatetime => Vec::new(),
        Kind::WikipediaSearch => vec![text("query", "What to look for", true), limit("pages")],
        Kind::WikipediaSummary => vec![text("title", "Title of the page", true)],
        Kind::ImageToText => vec![
            text("document-id", "Id of the picture in the library", true),
            text("question", "What to find out about the picture", false),
        ],
        Kind::GraphAbout => vec![
            text("name", "Name or label of the thing", true),
            limit("facts"),
        ],
        Kind::GraphPattern => vec![
            text("subject", "IRI or name of the subject", false),
            text("predicate", "IRI or name of the predicate", false),
            text("object", "IRI, name or text of the object", false),
            limit("triples"),
        ],
        Kind::GraphSparql => vec![text("query", "The SPARQL query", true)],
        Kind::Delegate { .. } => vec![
            text(
                "message",
                "What the agent is to do, with all that it has to know",
                false,
            ),
            text(
                "agent_id",
                "The agent; without it the one that fits the message best",
                false,
            ),
            text(
                "action",
                "run (usual), status of the tasks, cancel one, or steer one: begin it again with another message",
                false,
            ),
            text("task_id", "The task to cancel or to steer", false),
            text(
                "mode",
                "persistent: the agent knows what it was asked before; ephemeral (usual): it does not",
                false,
            ),
            text("session_id", "Name of a session to go on with", false),
            text("model", "One of the models that the agent allows", false),
        ],
        Kind::Dispatch { .. } => vec![one(
            "task_graph",
            arguments::Kind::Object,
            "An object with a list 'tasks', each with id, agent_id ('auto': the one that fits best), message, depends_on (ids of \
             tasks that come first), blocking (whether its failure ends all) and timeout_seconds. {{ID.output}} in a message \
             stands for what task ID found",
            true,
        )],
        Kind::Prompt { .. } | Kind::Mcp { .. } | Kind::ToolService { .. } => return None,
    })
}
