//! What retrieval asks the graph store of ours beside patterns: a whole frontier in one question, and
//! where facts come from in one question. Only native processes exchange these.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;
use crate::error::Error;
use crate::rdf::{Term, Triple};

/// The edges around nodes, one hop, all nodes at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct NeighbourhoodRequest {
    /// Collection to look in.
    #[serde(deserialize_with = "nullable")]
    pub collection: String,
    /// The frontier.
    #[serde(deserialize_with = "nullable")]
    pub nodes: Vec<Term>,
    /// Most edges of one node in one direction (as subject, as predicate, as object).
    #[serde(deserialize_with = "nullable")]
    pub limit: i64,
    /// Graphs to look in; empty text is the default graph, `*` all of them. None: all but those left out.
    #[serde(deserialize_with = "nullable")]
    pub graphs: Vec<String>,
    /// Graphs left out when `graphs` names none.
    #[serde(deserialize_with = "nullable")]
    pub exclude_graphs: Vec<String>,
    /// Predicates that may be followed; none: all.
    #[serde(deserialize_with = "nullable")]
    pub predicates: Vec<String>,
    /// Beginnings of predicates that are not followed.
    #[serde(deserialize_with = "nullable")]
    pub exclude_predicates: Vec<String>,
    /// Predicates followed although their beginning is left out.
    #[serde(deserialize_with = "nullable")]
    pub keep_predicates: Vec<String>,
    /// Only nodes of one of these types are looked around; none: all.
    #[serde(deserialize_with = "nullable")]
    pub types: Vec<String>,
    /// Literals with a language tag count only in these languages; none: all.
    #[serde(deserialize_with = "nullable")]
    pub languages: Vec<String>,
    /// Where a node has more than `limit` edges, those that share words with these come first. Lower case.
    #[serde(deserialize_with = "nullable")]
    pub words: Vec<String>,
}

message!(NeighbourhoodRequest);

/// A term with its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct LabelledTerm {
    /// The term.
    pub term: Option<Term>,
    /// Its label, else the last part of its IRI, else its text.
    #[serde(deserialize_with = "nullable")]
    pub label: String,
}

message!(LabelledTerm);

/// An edge; its ends are places in the list of terms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Neighbour {
    /// Subject.
    #[serde(deserialize_with = "nullable")]
    pub s: i64,
    /// Predicate.
    #[serde(deserialize_with = "nullable")]
    pub p: i64,
    /// Object.
    #[serde(deserialize_with = "nullable")]
    pub o: i64,
    /// Place among the asked nodes of the one that led here first.
    #[serde(deserialize_with = "nullable")]
    pub node: i64,
    /// Named graph; nothing for the default graph.
    pub graph: Option<String>,
}

message!(Neighbour);

/// The edges found. An edge that several nodes share is there once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct NeighbourhoodResponse {
    /// Why there is no answer.
    pub error: Option<Error>,
    /// Every term of the edges once.
    #[serde(deserialize_with = "nullable")]
    pub terms: Vec<LabelledTerm>,
    /// The edges, grouped by node in the order asked.
    #[serde(deserialize_with = "nullable")]
    pub edges: Vec<Neighbour>,
    /// Edges looked at.
    #[serde(deserialize_with = "nullable")]
    pub examined: i64,
}

message!(NeighbourhoodResponse);

/// Where facts and parts of documents come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct SourcesRequest {
    /// Collection to look in.
    #[serde(deserialize_with = "nullable")]
    pub collection: String,
    /// Facts, with their typed terms.
    #[serde(deserialize_with = "nullable")]
    pub edges: Vec<Triple>,
    /// Chunks, pages and documents.
    #[serde(deserialize_with = "nullable")]
    pub nodes: Vec<String>,
    /// Most properties reported of one document.
    #[serde(deserialize_with = "nullable")]
    pub properties: i64,
}

message!(SourcesRequest);

/// Where one of the asked comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct TracedSource {
    /// Chunks that say it.
    #[serde(deserialize_with = "nullable")]
    pub chunks: Vec<String>,
    /// Documents, as places in the list of documents.
    #[serde(deserialize_with = "nullable")]
    pub documents: Vec<i64>,
    /// Number of the page nearest above, from 1; 0: none.
    #[serde(deserialize_with = "nullable")]
    pub page: i64,
}

message!(TracedSource);

/// What is known of a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct SourceDocument {
    /// The document.
    #[serde(deserialize_with = "nullable")]
    pub uri: String,
    /// Its title, else its label, else empty.
    #[serde(deserialize_with = "nullable")]
    pub title: String,
    /// What else is said of it: predicate and object by turns, each with its label.
    #[serde(deserialize_with = "nullable")]
    pub properties: Vec<LabelledTerm>,
}

message!(SourceDocument);

/// Answer to [`SourcesRequest`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct SourcesResponse {
    /// Why there is no answer.
    pub error: Option<Error>,
    /// One entry per edge, then one per node, in the order asked.
    #[serde(deserialize_with = "nullable")]
    pub traced: Vec<TracedSource>,
    /// Every document once.
    #[serde(deserialize_with = "nullable")]
    pub documents: Vec<SourceDocument>,
}

message!(SourcesResponse);
