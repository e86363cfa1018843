//! What each kind of tool does: one file per kind, each a question to another service.
//!
//! Arguments were checked before. An error becomes an observation, so its text is for the model.

mod graph_about;
mod graph_pattern;
mod graph_sparql;
mod mcp;
mod model;
mod retrieval;
mod rows;
mod service;
mod sparql;

use serde_json::{Map, Value};
use tg_mesh::Cx;
use tg_schemas::Error;

use crate::engine::decision::{Explained, Usage};
use crate::engine::toolset::{Kind, Tool};

/// Arguments of a call.
pub type Arguments = Map<String, Value>;

/// A call of a tool.
pub struct Call<'a> {
    /// Context of the step, with the call's own deadline.
    pub cx: &'a Cx,
    /// Collection to read.
    pub collection: &'a str,
    /// Names the call; the same when it is made again.
    pub key: String,
    /// IRI of the decision that led here.
    pub iteration: String,
}

/// What a tool returned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// Text for the model.
    pub text: String,
    /// What the tool's own model calls took.
    pub usage: Usage,
    /// The trace that the tool itself left, in order.
    pub trace: Vec<Explained>,
}

impl From<String> for Output {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

/// Uses a tool.
///
/// # Errors
/// What the tool's service answered instead of a result, or that nobody serves it.
pub async fn call(call: &Call<'_>, tool: &Tool, arguments: Arguments) -> Result<Output, Error> {
    match &tool.kind {
        Kind::TextCompletion => model::question(call, arguments).await,
        Kind::Prompt { template } => model::prompt(call, template, arguments).await,
        Kind::Mcp { name, .. } => mcp::call(call, name, &arguments).await,
        Kind::Calculator => mcp::call(call, mcp::CALCULATOR, &arguments).await,
        Kind::CurrentDatetime => mcp::call(call, mcp::CURRENT_DATETIME, &arguments).await,
        Kind::ToolService {
            request, config, ..
        } => service::call(call, request, config, &arguments).await,
        Kind::GraphAbout => graph_about::call(call, &arguments).await,
        Kind::GraphPattern => graph_pattern::call(call, &arguments).await,
        Kind::GraphSparql => graph_sparql::call(call, &arguments).await,
        Kind::KnowledgeQuery => retrieval::graph(call, &arguments).await,
        Kind::DocumentQuery => retrieval::documents(call, &arguments).await,
        Kind::StructuredQuery => rows::question(call, &arguments).await,
        Kind::RowEmbeddingsQuery {
            schema,
            index,
            limit,
        } => rows::search(call, schema, index.as_deref(), *limit, &arguments).await,
    }
}

/// A text argument; empty if it was left out.
fn text<'a>(arguments: &'a Arguments, name: &str) -> &'a str {
    arguments
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or("")
        .trim()
}

/// How much is asked for, within bounds.
fn limit(arguments: &Arguments, usual: usize, most: usize) -> usize {
    let given = arguments.get("limit").and_then(Value::as_u64);
    let given = given.and_then(|limit| usize::try_from(limit).ok());
    given.unwrap_or(usual).clamp(1, most)
}
