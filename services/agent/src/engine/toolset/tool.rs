//! One tool: what it does, what it takes, when a run may use it; and the rows that tools are read from.

use serde_json::{Map, Value};

use crate::engine::arguments::Argument;

/// State of a run that has none.
pub const UNDEFINED: &str = "undefined";
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
    pub(super) groups: Vec<String>,
    pub(super) state: Option<String>,
    pub(super) applicable: Vec<String>,
}

impl Tool {
    /// State after the tool was used.
    pub fn next_state(&self, now: &str) -> String {
        self.state
            .clone()
            .unwrap_or_else(|| state_of(now).to_owned())
    }

    pub(super) fn available(&self, groups: &[&str], state: &str) -> bool {
        let in_group = groups
            .iter()
            .any(|group| *group == "*" || self.groups.iter().any(|own| own == group));
        in_group && self.applicable.iter().any(|own| own == "*" || own == state)
    }
}

/// The state that a text names.
pub(super) fn state_of(text: &str) -> &str {
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
