//! GraphRAG and DocumentRAG. Field names, order and defaults are the wire contract.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;
use super::policy::UserContext;
use crate::error::Error;
use crate::rdf::Triple;

/// The `TraversalStep` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct TraversalStep {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `types`.
    pub types: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `relationships`.
    pub relationships: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `graphs`.
    pub graphs: Vec<String>,
}

message!(TraversalStep);

/// The `GraphRagQuery` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct GraphRagQuery {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `query`.
    pub query: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `collection`.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `entity_limit`.
    pub entity_limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `triple_limit`.
    pub triple_limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `max_subgraph_size`.
    pub max_subgraph_size: i64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `max_path_length`.
    pub max_path_length: i64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `edge_score_limit`.
    pub edge_score_limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `edge_limit`.
    pub edge_limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `max_reranker_input`.
    pub max_reranker_input: i64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `streaming`.
    pub streaming: bool,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `parent_uri`.
    pub parent_uri: String,
    /// Wire field `user_context`.
    pub user_context: Option<UserContext>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `grounding_seeds`.
    pub grounding_seeds: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `graph_seeds`.
    pub graph_seeds: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `languages`.
    pub languages: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `traversal_instructions`.
    pub traversal_instructions: Vec<TraversalStep>,
    /// Wire field `graph`.
    pub graph: Option<String>,
}

message!(GraphRagQuery);

/// The `Source` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Source {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `uri`.
    pub uri: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `title`.
    pub title: String,
}

message!(Source);

/// The `GraphRagResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct GraphRagResponse {
    /// Wire field `error`.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `response`.
    pub response: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `end_of_stream`.
    pub end_of_stream: bool,
    /// Wire field `explain_id`.
    pub explain_id: Option<String>,
    /// Wire field `explain_graph`.
    pub explain_graph: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `explain_triples`.
    pub explain_triples: Vec<Triple>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `message_type`.
    pub message_type: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `end_of_session`.
    pub end_of_session: bool,
    /// Wire field `in_token`.
    pub in_token: Option<i64>,
    /// Wire field `out_token`.
    pub out_token: Option<i64>,
    /// Wire field `model`.
    pub model: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `sources`.
    pub sources: Vec<Source>,
    /// Model whose vectors were searched; nothing if none were. Ours.
    pub embeddings_model: Option<String>,
}

message!(GraphRagResponse);

/// The `DocumentRagQuery` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct DocumentRagQuery {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `query`.
    pub query: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `collection`.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `doc_limit`.
    pub doc_limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `fetch_limit`.
    pub fetch_limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `streaming`.
    pub streaming: bool,
    /// What the question belongs to, for the trace. Ours, as all that follows.
    #[serde(deserialize_with = "nullable")]
    pub parent_uri: String,
    /// `vector`, `keyword` or `hybrid`; empty: as the service is set.
    #[serde(deserialize_with = "nullable")]
    pub retrieval_mode: String,
    /// Weight of the vector search in a hybrid one; 0: as the service is set.
    #[serde(deserialize_with = "nullable")]
    pub vector_weight: f64,
    /// Weight of the keyword search in a hybrid one; 0: as the service is set.
    #[serde(deserialize_with = "nullable")]
    pub keyword_weight: f64,
    /// `none` or `mmr`; empty: as the service is set.
    #[serde(deserialize_with = "nullable")]
    pub rerank_diversity_mode: String,
    /// Weight of relevance against variety, 0 to 1; 0: as the service is set.
    #[serde(deserialize_with = "nullable")]
    pub rerank_diversity_lambda: f64,
}

message!(DocumentRagQuery);

/// The `DocumentRagResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct DocumentRagResponse {
    /// Wire field `error`.
    pub error: Option<Error>,
    /// Wire field `response`.
    pub response: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `end_of_stream`.
    pub end_of_stream: bool,
    /// Wire field `explain_id`.
    pub explain_id: Option<String>,
    /// Wire field `explain_graph`.
    pub explain_graph: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `explain_triples`.
    pub explain_triples: Vec<Triple>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `message_type`.
    pub message_type: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `end_of_session`.
    pub end_of_session: bool,
    /// Wire field `in_token`.
    pub in_token: Option<i64>,
    /// Wire field `out_token`.
    pub out_token: Option<i64>,
    /// Wire field `model`.
    pub model: Option<String>,
    /// Documents that the cited chunks come from. Ours.
    #[serde(deserialize_with = "nullable")]
    pub sources: Vec<Source>,
    /// Model whose vectors were searched; nothing if none were. Ours.
    pub embeddings_model: Option<String>,
}

message!(DocumentRagResponse);
