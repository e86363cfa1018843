//! What each kind of tool does: one file per kind, each a question to another service.
//!
//! Arguments were checked before. An error becomes an observation, so its text is for the model.

mod graph_about;
mod graph_pattern;
mod graph_sparql;
mod knowledge;
mod mcp;
mod model;
mod origins;
mod passages;
mod picture;
mod retrieval;
mod rows;
mod service;
mod sparql;
mod tool_call;

use tg_schemas::Error;

pub(crate) use self::tool_call::text;
pub use self::tool_call::{Arguments, Call, Output};
use crate::engine::toolset::{Kind, Tool};
use crate::error::AgentError;

/// Uses a tool.
///
/// # Errors
/// What the tool's service answered instead of a result, or that nobody serves it.
pub async fn call(call: &Call<'_>, tool: &Tool, arguments: Arguments) -> Result<Output, Error> {
    match &tool.kind {
        Kind::TextCompletion => model::question(call, arguments).await,
        Kind::Prompt { template } => model::prompt(call, template, arguments).await,
        Kind::Mcp { server, name, .. } => {
            let server = server.as_deref().unwrap_or_default();
            mcp::call_at(call, (server, name), &arguments).await
        }
        Kind::Calculator => mcp::call(call, mcp::CALCULATOR, &arguments).await,
        Kind::CurrentDatetime => mcp::call(call, mcp::CURRENT_DATETIME, &arguments).await,
        Kind::WikipediaSearch => mcp::call(call, mcp::WIKIPEDIA_SEARCH, &arguments).await,
        Kind::WikipediaSummary => mcp::call(call, mcp::WIKIPEDIA_SUMMARY, &arguments).await,
        Kind::ImageToText => picture::of_library(call, &arguments).await,
        Kind::ToolService {
            request, config, ..
        } => service::call(call, request, config, &arguments).await,
        Kind::GraphAbout => graph_about::call(call, &arguments).await,
        Kind::GraphPattern => graph_pattern::call(call, &arguments).await,
        Kind::GraphSparql => graph_sparql::call(call, &arguments).await,
        Kind::KnowledgeQuery => retrieval::graph(call, &arguments).await,
        Kind::RagQuery => passages::call(call, &arguments).await,
        Kind::Knowledge(which) => knowledge::call(call, *which, &arguments).await,
        Kind::DocumentQuery => retrieval::documents(call, &arguments).await,
        Kind::StructuredQuery => rows::question(call, &arguments).await,
        // Runs of the agent's own.
        Kind::Delegate { .. } | Kind::Dispatch { .. } => Err(AgentError::NotAsked.into()),
        Kind::RowEmbeddingsQuery {
            schema,
            index,
            limit,
        } => rows::search(call, schema, index.as_deref(), *limit, &arguments).await,
    }
}
