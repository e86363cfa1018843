//! Kinds of services of flows, and what each takes.

use super::gate::Gate::{self, Needs};
use crate::ask::{self, Asks};
use crate::engine::translate::agent::Agent;
use crate::engine::translate::chat::Chat;
use crate::engine::translate::completion::Completion;
use crate::engine::translate::embeddings::Embeddings;
use crate::engine::translate::generic::Generic;
use crate::engine::translate::image::ImageToText;
use crate::engine::translate::load::{DocumentLoad, TextLoad};
use crate::engine::translate::passthrough::Passthrough;
use crate::engine::translate::prompt::Prompt;
use crate::engine::translate::rag::{DocumentRag, GraphRag};
use crate::engine::translate::reranker::Reranker;
use crate::engine::translate::rows::Rows;
use crate::engine::translate::sparql::Sparql;
use crate::engine::translate::structured::{NlpQuery, StructuredDiag, StructuredQuery};
use crate::engine::translate::tool::Tool;
use crate::engine::translate::triples::TriplesQuery;
use crate::engine::translate::vectors::{
    DocumentEmbeddings, GraphEmbeddings, KeywordIndex, RowEmbeddings,
};

/// A kind of flow service.
pub(crate) struct Kind {
    /// Name at the endpoints, and of the interface.
    pub(crate) name: &'static str,
    /// What it needs.
    pub(crate) gate: Gate,
    /// Its translator.
    pub(crate) asks: Asks,
    /// Its topic is not of blueprints: every flow with such a processor has it.
    pub(crate) own: bool,
    /// It is an input of the flow, which the librarian fills.
    pub(crate) input: bool,
    /// It leaves something behind but its answer, or its answer is kept: it may go on without its caller.
    pub(crate) lasting: bool,
    /// What it sends is kept at the gateway meanwhile, and can be joined again.
    pub(crate) kept: bool,
}

const fn kind(name: &'static str, capability: &'static str, asks: Asks) -> Kind {
    Kind {
        name,
        gate: Needs(capability),
        asks,
        own: false,
        input: false,
        lasting: false,
        kept: false,
    }
}

const fn lasting(name: &'static str, capability: &'static str, asks: Asks) -> Kind {
    Kind {
        lasting: true,
        ..kind(name, capability, asks)
    }
}

const fn kept(name: &'static str, capability: &'static str, asks: Asks) -> Kind {
    Kind {
        kept: true,
        ..lasting(name, capability, asks)
    }
}

const fn load(name: &'static str, asks: Asks) -> Kind {
    Kind {
        name,
        gate: Needs("documents:write"),
        asks,
        own: false,
        input: true,
        lasting: true,
        kept: false,
    }
}

pub(super) const KINDS: &[Kind] = &[
    lasting("agent", "agent", ask::ask::<Agent>),
    kept("text-completion", "llm", ask::ask::<Completion>),
    Kind {
        own: true,
        ..kept("chat-completion", "llm", ask::ask::<Chat>)
    },
    kept("prompt", "llm", ask::ask::<Prompt>),
    lasting("mcp-tool", "mcp", ask::ask::<Tool>),
    kind("triples", "triples:read", ask::ask::<TriplesQuery>),
    kind("sparql", "sparql:read", ask::ask::<Sparql>),
    load("text-load", ask::ask::<TextLoad>),
    load("document-load", ask::ask::<DocumentLoad>),
    kept("graph-rag", "graph-rag:read", ask::ask::<GraphRag>),
    kept("document-rag", "document-rag:read", ask::ask::<DocumentRag>),
    kind("embeddings", "embeddings", ask::ask::<Embeddings>),
    kind(
        "graph-embeddings",
        "graph-embeddings:read",
        ask::ask::<GraphEmbeddings>,
    ),
    kind(
        "document-embeddings",
        "document-embeddings:read",
        ask::ask::<DocumentEmbeddings>,
    ),
    kind(
        "row-embeddings",
        "row-embeddings:read",
        ask::ask::<RowEmbeddings>,
    ),
    // Finds chunks, as their vectors do.
    kind(
        "keyword-index",
        "document-embeddings:read",
        ask::ask::<KeywordIndex>,
    ),
    kind("rows", "rows:read", ask::ask::<Rows>),
    kind("nlp-query", "nlp-query:read", ask::ask::<NlpQuery>),
    kind(
        "structured-query",
        "structured-query:read",
        ask::ask::<StructuredQuery>,
    ),
    kind(
        "structured-diag",
        "structured-query:read",
        ask::ask::<StructuredDiag>,
    ),
    kind("reranker", "reranker", ask::ask::<Reranker>),
    kind("image-to-text", "image-to-text", ask::ask::<ImageToText>),
    kind("cloze", "cloze", ask::ask::<Generic>),
    kind("decision-scoring", "decision-scoring", ask::ask::<Generic>),
    kind("field-extraction", "field-extraction", ask::ask::<Generic>),
];

/// Any interface, by name: `thru/<interface>`. Who may look at the flows of a workspace may use it, see
/// [`thru_gate`].
pub(crate) const THRU: Kind = Kind {
    name: "thru",
    gate: Needs("flows:read"),
    asks: ask::ask::<Passthrough>,
    own: false,
    input: false,
    lasting: true,
    kept: false,
};

/// A kind of flow service.
pub(crate) fn flow_kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// Whether a kind stands for any interface.
pub(crate) fn is_thru(kind: &Kind) -> bool {
    kind.name == THRU.name
}

/// Whether `thru/<interface>` speaks the messages of the kind of that name. Those of `agent` have fields that
/// are not for clients.
pub(crate) fn takes_raw(interface: &str) -> bool {
    interface != "agent" && flow_kind(interface).is_some()
}

/// What `thru/<interface>` needs: what the kind of that name needs, so that the way around the translators is
/// no way around the capabilities.
pub(crate) fn thru_gate(interface: &str) -> Gate {
    flow_kind(interface).map_or(THRU.gate, |kind| kind.gate)
}

/// Every kind of flow service.
#[cfg(test)]
pub(crate) fn all_kinds() -> impl Iterator<Item = &'static Kind> {
    KINDS.iter()
}
