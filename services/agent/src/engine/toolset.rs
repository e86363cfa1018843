//! The tools of a workspace as configuration says, and which of them a run may use now.
//!
//! A row that cannot be read costs its own tool and no other. Never calls a tool.

mod row;

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use tg_schemas::msg::AgentRun;

use super::arguments::Argument;

/// State of a run that has none.
pub const UNDEFINED: &str = "undefined";
/// Tools that a run may use at once; more are left out, in the order of their names.
const MAX_TOOLS: usize = 200;

/// What a tool does.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Asks the model directly.
    TextCompletion,
    /// Fills in a prompt template.
    Prompt {
        /// Prompt id.
        template: String,
    },
    /// Calls an MCP tool.
    Mcp {
        /// Key in config type `mcp`.
        name: String,
        /// Whether calling it twice does no harm.
        repeatable: bool,
    },
    /// Works out an expression.
    Calculator,
    /// Tells the time.
    CurrentDatetime,
    /// Finds things in the graph by name.
    GraphAbout,
    /// Matches a triple pattern.
    GraphPattern,
    /// Runs a query.
    GraphSparql,
    /// Asks a service behind a queue of this workspace.
    ToolService {
        /// Topic id.
        request: String,
        /// Parameters for the service.
        config: Map<String, Value>,
        /// Whether calling it twice does no harm.
        repeatable: bool,
    },
    /// Asks graph RAG.
    KnowledgeQuery,
    /// Asks document RAG.
    DocumentQuery,
    /// Asks the structured query service.
    StructuredQuery,
    /// Searches rows by meaning.
    RowEmbeddingsQuery {
        /// Schema of the rows.
        schema: String,
        /// Index to search.
        index: Option<String>,
        /// Most rows.
        limit: i64,
    },
}

impl Kind {
    /// Metric label.
    pub fn label(&self) -> &'static str {
        match self {
            Self::TextCompletion => "text-completion",
            Self::Prompt { .. } => "prompt",
            Self::Mcp { .. } => "mcp-tool",
            Self::Calculator => "calculator",
            Self::CurrentDatetime => "current-datetime",
            Self::GraphAbout => "graph-about",
            Self::GraphPattern => "graph-pattern",
            Self::GraphSparql => "graph-sparql",
            Self::ToolService { .. } => "tool-service",
            Self::KnowledgeQuery => "knowledge-query",
            Self::DocumentQuery => "document-query",
            Self::StructuredQuery => "structured-query",
            Self::RowEmbeddingsQuery { .. } => "row-embeddings-query",
        }
    }

    /// Whether a call of unknown outcome may be made again.
    pub fn repeatable(&self) -> bool {
        match self {
            Self::Mcp { repeatable, .. } | Self::ToolService { repeatable, .. } => *repeatable,
            _ => true,
        }
    }
}

/// One tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Name that the model writes.
    pub name: String,
    /// For the model.
    pub description: String,
    /// What it does.
    pub kind: Kind,
    /// What it takes.
    pub arguments: Vec<Argument>,
    /// Collection it reads instead of the run's.
    pub collection: Option<String>,
    groups: Vec<String>,
    state: Option<String>,
    applicable: Vec<String>,
}

impl Tool {
    /// State after the tool was used.
    pub fn next_state(&self, now: &str) -> String {
        self.state
            .clone()
            .unwrap_or_else(|| state_of(now).to_owned())
    }

    fn available(&self, groups: &[&str], state: &str) -> bool {
        let in_group = groups
            .iter()
            .any(|group| *group == "*" || self.groups.iter().any(|own| own == group));
        in_group && self.applicable.iter().any(|own| own == "*" || own == state)
    }
}

fn state_of(text: &str) -> &str {
    if text.is_empty() { UNDEFINED } else { text }
}

/// Rows of the config types that describe tools.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rows<'a> {
    /// Type `tool`.
    pub tools: &'a [(&'a str, &'a str)],
    /// Type `tool-native`.
    pub native: &'a [(&'a str, &'a str)],
    /// Type `tool-service`.
    pub services: &'a [(&'a str, &'a str)],
    /// Workspace they belong to.
    pub workspace: &'a str,
}

/// All tools of a workspace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolSet {
    tools: Vec<Tool>,
    /// Rows that were left out, and why.
    pub faults: Vec<String>,
}

impl ToolSet {
    /// Reads the rows. Of two tools with one name, the one read later wins: `tool` after `tool-native`,
    /// keys in their order.
    pub fn read(rows: &Rows<'_>) -> Self {
        let mut tools: BTreeMap<String, Tool> = BTreeMap::new();
        let mut faults = Vec::new();
        let native = rows.native.iter().map(|row| (row, true));
        for ((key, value), native) in native.chain(rows.tools.iter().map(|row| (row, false))) {
            match row::read(key, value, native, rows) {
                Ok(tool) => {
                    tools.insert(tool.name.clone(), tool);
                }
                Err(fault) => faults.push(format!("tool '{key}': {fault}")),
            }
        }
        Self {
            tools: tools.into_values().collect(),
            faults,
        }
    }

    /// The tools that a run may use in its present state.
    pub fn available(&self, run: &AgentRun) -> Vec<&Tool> {
        let groups: Vec<&str> = match &run.group {
            None => vec!["default"],
            Some(groups) => groups.iter().map(String::as_str).collect(),
        };
        let state = state_of(&run.state);
        self.tools
            .iter()
            .filter(|tool| tool.available(&groups, state))
            .take(MAX_TOOLS)
            .collect()
    }
}

/// The tool a model means: the exact name, else the only one that differs in case and separators.
pub fn find<'a>(tools: &[&'a Tool], name: &str) -> Option<&'a Tool> {
    if let Some(tool) = tools.iter().find(|tool| tool.name == name) {
        return Some(tool);
    }
    let plain = |text: &str| -> String {
        text.chars()
            .filter(|c| !matches!(c, ' ' | '-' | '_'))
            .flat_map(char::to_lowercase)
            .collect()
    };
    let wanted = plain(name);
    let mut alike = tools.iter().filter(|tool| plain(&tool.name) == wanted);
    match (alike.next(), alike.next()) {
        (Some(tool), None) => Some(tool),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
