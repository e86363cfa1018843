//! Triples, entity contexts, pattern and SPARQL queries. Field names, order and defaults are the wire contract.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;
use super::metadata::Metadata;
use super::policy::UserContext;
use crate::error::Error;
use crate::rdf::Term;
use crate::rdf::Triple;

/// The `EntityContext` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct EntityContext {
    /// Wire field `entity`.
    pub entity: Option<Term>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `context`.
    pub context: String,
    #[serde(deserialize_with = "nullable")]
    /// Id of the chunk that says so; empty: none.
    pub chunk_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `rdf_type`.
    pub rdf_type: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `attributes`.
    pub attributes: serde_json::Map<String, serde_json::Value>,
}

message!(EntityContext);

/// The `EntityContexts` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct EntityContexts {
    /// Wire field `metadata`.
    pub metadata: Option<Metadata>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `entities`.
    pub entities: Vec<EntityContext>,
}

message!(EntityContexts);

/// The `Triples` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Triples {
    /// Wire field `metadata`.
    pub metadata: Option<Metadata>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `triples`.
    pub triples: Vec<Triple>,
}

message!(Triples);

/// The `TriplesQueryRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TriplesQueryRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `collection`.
    pub collection: String,
    /// Subject; `None` matches every one.
    pub s: Option<Term>,
    /// Predicate; `None` matches every one.
    pub p: Option<Term>,
    /// Object; `None` matches every one.
    pub o: Option<Term>,
    /// Wire field `g`.
    pub g: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// Most results.
    pub limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Whether results are wanted in batches.
    pub streaming: bool,
    #[serde(deserialize_with = "nullable")]
    /// Most results of a batch.
    pub batch_size: i64,
    /// Wire field `user_context`.
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

/// The `TriplesQueryResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TriplesQueryResponse {
    /// Wire field `error`.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `triples`.
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

/// The `SparqlBinding` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct SparqlBinding {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `values`.
    pub values: Vec<Option<Term>>,
}

message!(SparqlBinding);

/// The `SparqlQueryRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SparqlQueryRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `collection`.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `query`.
    pub query: String,
    #[serde(deserialize_with = "nullable")]
    /// Most results.
    pub limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Whether results are wanted in batches.
    pub streaming: bool,
    #[serde(deserialize_with = "nullable")]
    /// Most results of a batch.
    pub batch_size: i64,
    /// Wire field `user_context`.
    pub user_context: Option<UserContext>,
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
        }
    }
}

message!(SparqlQueryRequest);

/// The `SparqlQueryResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SparqlQueryResponse {
    /// Wire field `error`.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `query_type`.
    pub query_type: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `variables`.
    pub variables: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `bindings`.
    pub bindings: Vec<SparqlBinding>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `ask_result`.
    pub ask_result: bool,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `triples`.
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
