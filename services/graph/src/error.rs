//! What can go wrong in the graph engine, and how it is said to clients.

use tg_schemas::{Error, ErrorCode};
use tg_storage::StorageError;

/// Why the engine did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// A term or graph name is not valid; the text names the field.
    #[error("{field}: {why}")]
    Term {
        /// Path of the field, e.g. `triples[3].o.tr.s`.
        field: String,
        /// What is wrong with it.
        why: String,
    },
    /// A file could not be read as RDF.
    #[error("{0}")]
    Syntax(String),
    /// The query is no SPARQL, or deeper or longer than the engine reads.
    #[error("{0}")]
    QuerySyntax(String),
    /// The query failed while it ran.
    #[error("{0}")]
    Evaluation(String),
    /// The query ran longer than it may.
    #[error("the time limit of {0} s was reached")]
    TimeLimit(u64),
    /// The query used more memory than one may. In MiB.
    #[error("the query needs more memory than a query may use ({0} MiB)")]
    QueryMemory(usize),
    /// The queries of a workspace, or all, used more memory than they may together. In MiB.
    #[error(
        "the queries running now use all the memory that queries may use ({0} MiB): try again later"
    )]
    QueriesMemory(usize),
    /// The query built a text that is longer than it may. In MiB.
    #[error("the query builds a text that needs more memory than a text may use ({0} MiB)")]
    LongText(usize),
    /// The reader of an answer took nothing for so many seconds.
    #[error("the results were not read for {0} s")]
    Stalled(u64),
    /// The answer is too large for one message.
    #[error("more than {0} results: set a limit, or ask with streaming")]
    TooMany(usize),
    /// The answer is too large for one message. In MiB.
    #[error("the results are larger than {0} MiB: set a limit, or ask with streaming")]
    TooMuch(usize),
    /// The workspace would have more quads, or more text in its graphs, than it may.
    #[error("{}", .0.message)]
    Quota(Error),
    /// The graph, or what a change would make of it, does not fit in the memory for graphs. In MiB.
    #[error(
        "the graph does not fit: it needs about {needed} MiB of the {limit} MiB of memory for {of}, of which {used} MiB are in use"
    )]
    GraphMemory {
        /// What it needs.
        needed: u64,
        /// What other graphs use.
        used: u64,
        /// What all of them may use.
        limit: u64,
        /// Which graphs.
        of: &'static str,
    },
    /// A query gets a thread of its own, whose stack the system has no address space for.
    #[error(
        "the process has not enough address space left for a query, which needs {0} MiB of it; try again, or raise its limit"
    )]
    NoThread(usize),
    /// The collection has policies, and nothing is known of the user.
    #[error("this collection has policies: ask with a token that has a user context")]
    NoUserContext,
    /// A policy of the collection cannot be read or applied: nothing is shown.
    #[error("policy {name}: {why}")]
    Policy {
        /// Its label or IRI.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// The asker gave up.
    #[error("cancelled")]
    Cancelled,
    /// The journal failed; nothing of the change was applied.
    #[error(transparent)]
    Journal(#[from] StorageError),
    /// The engine is closing, or one of its threads died.
    #[error("the graph store is closed")]
    Closed,
}

impl GraphError {
    /// The error as clients see it. `kind` is the wire type of faults that have none of their own.
    pub fn to_wire(&self, kind: &str) -> Error {
        let code = match self {
            Self::Journal(storage) => return storage.clone().into(),
            Self::Evaluation(_) | Self::TimeLimit(_) => {
                return Error::typed(kind, self.to_string());
            }
            Self::NoUserContext => {
                return Error::typed("policy-enforcement-error", self.to_string());
            }
            Self::Policy { .. } => {
                return Error::typed("triples-query-policy-error", self.to_string());
            }
            Self::QuerySyntax(_) => return Error::typed("sparql-parse-error", self.to_string()),
            Self::Term { .. } | Self::Syntax(_) => ErrorCode::BadRequest,
            Self::TooMany(_)
            | Self::TooMuch(_)
            | Self::QueryMemory(_)
            | Self::LongText(_)
            | Self::Quota(_)
            | Self::GraphMemory { .. } => ErrorCode::TooLarge,
            Self::QueriesMemory(_) | Self::NoThread(_) => ErrorCode::Busy,
            Self::Stalled(_) => ErrorCode::Timeout,
            Self::Cancelled => ErrorCode::Cancelled,
            Self::Closed => ErrorCode::Unavailable,
        };
        Error::new(code, self.to_string())
    }
}

impl From<oxigraph::store::StorageError> for GraphError {
    fn from(error: oxigraph::store::StorageError) -> Self {
        tracing::error!(%error, "the store in memory failed");
        Self::Evaluation("the graph store failed".to_owned())
    }
}
