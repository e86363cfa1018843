//! One tool: what it does, what it takes, when a run may use it; and the rows that tools are read from.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tg_schemas::msg::AgentRun;

use super::knowledge::Knowledge;
use crate::engine::arguments::Argument;
use crate::engine::delegating::{Definition, Roster};

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
        /// Key of its server in config type `mcp`; `None`: that is the name.
        server: Option<String>,
        /// The tool.
        name: String,
        /// Whether calling it twice does no harm.
        repeatable: bool,
    },
    /// Works out an expression.
    Calculator,
    /// Tells the time.
    CurrentDatetime,
    /// Searches Wikipedia.
    WikipediaSearch,
    /// Gives the summary of one of its pages.
    WikipediaSummary,
    /// Says what a picture of the library shows.
    ImageToText,
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
    /// Finds passages.
    RagQuery,
    /// Looks into the collections of the run.
    Knowledge(Knowledge),
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
    /// Gives work to another agent.
    Delegate {
        /// Who there is.
        agents: Arc<Roster>,
    },
    /// Gives several tasks that depend on each other to other agents.
    Dispatch {
        /// Who there is.
        agents: Arc<Roster>,
        /// Tasks that go on at the same time.
        concurrent: usize,
        /// The call answers at once, and what comes of the tasks is announced.
        r#async: bool,
        /// The session is notified of each task that ends meanwhile.
        progress: bool,
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
            Self::WikipediaSearch => "wikipedia-search",
            Self::WikipediaSummary => "wikipedia-summary",
            Self::ImageToText => "image-to-text",
            Self::GraphAbout => "graph-about",
            Self::GraphPattern => "graph-pattern",
            Self::GraphSparql => "graph-sparql",
            Self::ToolService { .. } => "tool-service",
            Self::KnowledgeQuery => "knowledge-query",
            Self::DocumentQuery => "document-query",
            Self::RagQuery => "rag-query",
            Self::Knowledge(which) => which.label(),
            Self::StructuredQuery => "structured-query",
            Self::RowEmbeddingsQuery { .. } => "row-embeddings-query",
            Self::Delegate { .. } => "delegate",
            Self::Dispatch { .. } => "dispatch",
        }
    }

    /// Whether subagents do what it does.
    pub fn gives_work(&self) -> bool {
        self.agents().is_some()
    }

    /// The agents that it gives work to, if it does.
    pub(super) fn agents(&self) -> Option<&Roster> {
        match self {
            Self::Delegate { agents } | Self::Dispatch { agents, .. } => Some(agents),
            _ => None,
        }
    }

    /// Whether a call asks models that count for the run.
    pub fn asks_model(&self) -> bool {
        matches!(
            self,
            Self::TextCompletion
                | Self::Prompt { .. }
                | Self::ImageToText
                | Self::KnowledgeQuery
                | Self::DocumentQuery
        )
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
    /// It is asked again and again until something has changed.
    pub poll: bool,
    /// Its configuration says so, not its name alone: it is not used again too soon.
    pub backs_off: bool,
    /// Collection it reads instead of the run's.
    pub collection: Option<String>,
    /// How long a call may take, where that is less than any tool's.
    pub timeout: Option<Duration>,
    /// Whether the user is asked before it is used.
    pub confirm: bool,
    /// Whether it changes something.
    pub writes: bool,
    /// Roles of whom it is for; `None`: of everybody.
    pub(super) roles: Option<Vec<String>>,
    pub(super) groups: Vec<String>,
    pub(super) state: Option<String>,
    pub(super) applicable: Vec<String>,
}

impl Tool {
    /// What a run's model reads of it.
    pub fn described(&self, run: &AgentRun) -> Cow<'_, str> {
        match self.kind.agents() {
            Some(agents) => Cow::Owned(
                format!("{}\nAgents:{}", self.description, agents.list(run))
                    .trim()
                    .to_owned(),
            ),
            None => Cow::Borrowed(&self.description),
        }
    }

    /// State after the tool was used.
    pub fn next_state(&self, now: &str) -> String {
        self.state
            .clone()
            .unwrap_or_else(|| state_of(now).to_owned())
    }

    /// Whether there is anybody whom a run may give work to, for a tool that does.
    pub(super) fn has_agents(&self, run: &AgentRun) -> bool {
        let agents = self.kind.agents();
        agents.is_none_or(|agents| !agents.is_empty(run))
    }

    /// Whether a run may use it in some state: it is of the run's groups and for its asker, and where it writes, the asker
    /// is asked, or has said so.
    pub(super) fn is_for(&self, run: &AgentRun, groups: &[&str]) -> bool {
        let roles = self.roles.as_ref();
        let for_asker = roles.is_none_or(|roles| roles.iter().any(|role| run.roles.contains(role)));
        self.in_group(groups) && for_asker && (!self.writes || self.confirm || self.granted(run))
    }

    /// Whether the request or its key lets the run use it without asking.
    fn granted(&self, run: &AgentRun) -> bool {
        run.grant.contains(&self.name)
    }

    /// Whether the user is asked before this run uses it.
    pub fn asks(&self, run: &AgentRun) -> bool {
        self.confirm && !self.granted(run)
    }

    fn in_group(&self, groups: &[&str]) -> bool {
        groups
            .iter()
            .any(|group| *group == "*" || self.groups.iter().any(|own| own == group))
    }

    /// Whether it is there in a state.
    pub(super) fn applies_in(&self, state: &str) -> bool {
        self.applicable.iter().any(|own| own == "*" || own == state)
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
    /// Type `agent-definition`.
    pub agents: &'a [(&'a str, &'a str)],
    /// The tools of MCP servers as they say, in JSON, by their keys in config type `mcp`.
    pub listed: &'a [(&'a str, &'a str)],
    /// Agents that are programs, by id.
    pub programs: &'a [(String, Definition)],
    /// Workspace they belong to.
    pub workspace: &'a str,
}
