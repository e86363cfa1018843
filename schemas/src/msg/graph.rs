//! Triples, entity contexts, pattern and SPARQL queries. Field names, order and defaults are the wire contract.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;
use super::metadata::Metadata;
use super::policy::UserContext;
use crate::error::Error;
use crate::rdf::Term;
use crate::rdf::Triple;

/// What a text says of an entity, to make a vector of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct EntityContext {
    /// The entity, an IRI as a rule.
    pub entity: Option<Term>,
    #[serde(deserialize_with = "nullable")]
    /// The words.
    pub context: String,
    #[serde(deserialize_with = "nullable")]
    /// Id of the chunk that says so; empty: none.
    pub chunk_id: String,
    #[serde(deserialize_with = "nullable")]
    /// IRIs of the entity's types; they go with the vector.
    pub rdf_type: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// What searches may filter by; it goes with the vector.
    pub attributes: serde_json::Map<String, serde_json::Value>,
    /// Who found it, and how: see [`super::made_by`]. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub made_by: String,
}

message!(EntityContext);

/// Entities with what texts say of them, for the embeddings stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct EntityContexts {
    /// What they were found in, and the collection they go to.
    pub metadata: Option<Metadata>,
    #[serde(deserialize_with = "nullable")]
    /// The entities.
    pub entities: Vec<EntityContext>,
}

message!(EntityContexts, metadata);

/// Triples to be stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Triples {
    /// What they come from, and the collection they go to; a collection that is not there begins with them.
    pub metadata: Option<Metadata>,
    #[serde(deserialize_with = "nullable")]
    /// The triples, each in the graph that it names.
    pub triples: Vec<Triple>,
}

message!(Triples, metadata);

/// Asks for the triples that fit a pattern.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TriplesQueryRequest {
    #[serde(deserialize_with = "nullable")]
    /// Collection to look in.
    pub collection: String,
    /// Subject; `None` matches every one.
    pub s: Option<Term>,
    /// Predicate; `None` matches every one.
    pub p: Option<Term>,
    /// Object; `None` matches every one.
    pub o: Option<Term>,
    /// Graph; `None` or `*`: all, the default graph too. Empty text: the default graph.
    pub g: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// Most results; 0 or less: no limit of the asker's.
    pub limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Whether results are wanted in batches.
    pub streaming: bool,
    #[serde(deserialize_with = "nullable")]
    /// Most results of a part, where the answer is streamed; 0 or less: 20, at most 5,000.
    pub batch_size: i64,
    /// For whom, where policies filter the answer. Our own store has no policies and does not look at it; it is
    /// passed on to one that has.
    pub user_context: Option<UserContext>,
}

impl Default for TriplesQueryRequest {
    fn default() -> Self {
        Self {
            collection: Default::default(),
            s: None,
            p: None,
            o: None,
            g: None,
            limit: Default::default(),
            streaming: Default::default(),
            batch_size: 20,
            user_context: None,
        }
    }
}

message!(TriplesQueryRequest);

/// Triples that were found, in no order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TriplesQueryResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// The triples of this part.
    pub triples: Vec<Triple>,
    #[serde(deserialize_with = "nullable")]
    /// Whether nothing follows.
    pub is_final: bool,
}

impl Default for TriplesQueryResponse {
    fn default() -> Self {
        Self {
            error: None,
            triples: Default::default(),
            is_final: true,
        }
    }
}

message!(TriplesQueryResponse);

/// One solution of a SELECT.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct SparqlBinding {
    #[serde(deserialize_with = "nullable")]
    /// One term for each of `variables`, in their order; `None` where the variable has none.
    pub values: Vec<Option<Term>>,
}

message!(SparqlBinding);

/// Asks a SPARQL 1.1 query of a collection. Updates and SERVICE are refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SparqlQueryRequest {
    #[serde(deserialize_with = "nullable")]
    /// Collection to look in.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// The query.
    pub query: String,
    #[serde(deserialize_with = "nullable")]
    /// Most results; 0 or less: no limit of the asker's, 10,000 if left out.
    pub limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Whether results are wanted in batches.
    pub streaming: bool,
    #[serde(deserialize_with = "nullable")]
    /// Most results of a part, where the answer is streamed; 0 or less: 20, at most 5,000.
    pub batch_size: i64,
    /// For whom, where policies filter the answer. Our own store has no policies and does not look at it.
    pub user_context: Option<UserContext>,
    /// Graphs that are the default graph together, whatever the query's `FROM` says. With neither of these two lists, the
    /// query's own dataset counts.
    #[serde(deserialize_with = "nullable")]
    pub default_graphs: Vec<String>,
    /// Graphs that `GRAPH` finds, whatever the query's `FROM NAMED` says.
    #[serde(deserialize_with = "nullable")]
    pub named_graphs: Vec<String>,
}

impl Default for SparqlQueryRequest {
    fn default() -> Self {
        Self {
            collection: Default::default(),
            query: Default::default(),
            limit: 10000,
            streaming: Default::default(),
            batch_size: 20,
            user_context: None,
            default_graphs: Vec::new(),
            named_graphs: Vec::new(),
        }
    }
}

message!(SparqlQueryRequest);

/// What a query yields; which field has it follows from its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SparqlQueryResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// `select`, `ask`, `construct` or `describe`; empty with an `error`.
    pub query_type: String,
    #[serde(deserialize_with = "nullable")]
    /// SELECT: the names without `?`, in the order of each solution.
    pub variables: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// SELECT: the solutions of this part.
    pub bindings: Vec<SparqlBinding>,
    #[serde(deserialize_with = "nullable")]
    /// ASK: the answer.
    pub ask_result: bool,
    #[serde(deserialize_with = "nullable")]
    /// CONSTRUCT and DESCRIBE: the triples of this part.
    pub triples: Vec<Triple>,
    #[serde(deserialize_with = "nullable")]
    /// Whether nothing follows.
    pub is_final: bool,
}

impl Default for SparqlQueryResponse {
    fn default() -> Self {
        Self {
            error: None,
            query_type: Default::default(),
            variables: Default::default(),
            bindings: Default::default(),
            ask_result: Default::default(),
            triples: Default::default(),
            is_final: true,
        }
    }
}

message!(SparqlQueryResponse);
