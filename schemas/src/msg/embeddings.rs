//! Embeddings, vector, keyword and row look-ups, the reranker. Field names, order and defaults are the wire contract.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;
use super::metadata::Metadata;
use crate::error::Error;
use crate::rdf::Term;

/// The `EntityEmbeddings` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct EntityEmbeddings {
    /// Wire field `entity`.
    pub entity: Option<Term>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `vector`.
    pub vector: Vec<f32>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `chunk_id`.
    pub chunk_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `rdf_type`.
    pub rdf_type: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `attributes`.
    pub attributes: serde_json::Map<String, serde_json::Value>,
}

message!(EntityEmbeddings);

/// The `GraphEmbeddings` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct GraphEmbeddings {
    /// Wire field `metadata`.
    pub metadata: Option<Metadata>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `entities`.
    pub entities: Vec<EntityEmbeddings>,
    /// Model that made the vectors; empty when the sender does not say. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
}

message!(GraphEmbeddings);

/// The `ChunkEmbeddings` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ChunkEmbeddings {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `chunk_id`.
    pub chunk_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `vector`.
    pub vector: Vec<f32>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `attributes`.
    pub attributes: serde_json::Map<String, serde_json::Value>,
}

message!(ChunkEmbeddings);

/// The `DocumentEmbeddings` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct DocumentEmbeddings {
    /// Wire field `metadata`.
    pub metadata: Option<Metadata>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `chunks`.
    pub chunks: Vec<ChunkEmbeddings>,
    /// Model that made the vectors; empty when the sender does not say. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
}

message!(DocumentEmbeddings);

/// The `RowIndexEmbedding` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RowIndexEmbedding {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `index_name`.
    pub index_name: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `index_value`.
    pub index_value: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `text`.
    pub text: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `vector`.
    pub vector: Vec<f32>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `attributes`.
    pub attributes: serde_json::Map<String, serde_json::Value>,
}

message!(RowIndexEmbedding);

/// The `RowEmbeddings` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RowEmbeddings {
    /// Wire field `metadata`.
    pub metadata: Option<Metadata>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `schema_name`.
    pub schema_name: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `embeddings`.
    pub embeddings: Vec<RowIndexEmbedding>,
    /// Model that made the vectors; empty when the sender does not say. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
}

message!(RowEmbeddings);

/// The `EmbeddingsRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct EmbeddingsRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `texts`.
    pub texts: Vec<String>,
}

message!(EmbeddingsRequest);

/// The `EmbeddingsResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct EmbeddingsResponse {
    /// Wire field `error`.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `vectors`.
    pub vectors: Vec<Vec<f32>>,
    /// Model that made the vectors; empty when the sender does not say. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
}

message!(EmbeddingsResponse);

/// The `GraphEmbeddingsRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct GraphEmbeddingsRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `vector`.
    pub vector: Vec<f32>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `limit`.
    pub limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `collection`.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `rdf_type`.
    pub rdf_type: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `attributes`.
    pub attributes: serde_json::Map<String, serde_json::Value>,
    /// Model that made the vectors; empty when the sender does not say. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
}

message!(GraphEmbeddingsRequest);

/// The `EntityMatch` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct EntityMatch {
    /// Wire field `entity`.
    pub entity: Option<Term>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `score`.
    pub score: f64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `rdf_type`.
    pub rdf_type: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `attributes`.
    pub attributes: serde_json::Map<String, serde_json::Value>,
}

message!(EntityMatch);

/// The `GraphEmbeddingsResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct GraphEmbeddingsResponse {
    /// Wire field `error`.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `entities`.
    pub entities: Vec<EntityMatch>,
}

message!(GraphEmbeddingsResponse);

/// The `DocumentEmbeddingsRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct DocumentEmbeddingsRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `vector`.
    pub vector: Vec<f32>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `limit`.
    pub limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `collection`.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `attributes`.
    pub attributes: serde_json::Map<String, serde_json::Value>,
    /// Model that made the vectors; empty when the sender does not say. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
}

message!(DocumentEmbeddingsRequest);

/// The `ChunkMatch` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ChunkMatch {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `chunk_id`.
    pub chunk_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `score`.
    pub score: f64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `attributes`.
    pub attributes: serde_json::Map<String, serde_json::Value>,
}

message!(ChunkMatch);

/// The `DocumentEmbeddingsResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct DocumentEmbeddingsResponse {
    /// Wire field `error`.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `chunks`.
    pub chunks: Vec<ChunkMatch>,
}

message!(DocumentEmbeddingsResponse);

/// The `KeywordIndexRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct KeywordIndexRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `query`.
    pub query: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `limit`.
    pub limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `collection`.
    pub collection: String,
}

message!(KeywordIndexRequest);

/// The `KeywordIndexResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct KeywordIndexResponse {
    /// Wire field `error`.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `chunks`.
    pub chunks: Vec<ChunkMatch>,
}

message!(KeywordIndexResponse);

/// The `RowIndexMatch` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RowIndexMatch {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `index_name`.
    pub index_name: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `index_value`.
    pub index_value: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `text`.
    pub text: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `score`.
    pub score: f64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `attributes`.
    pub attributes: serde_json::Map<String, serde_json::Value>,
}

message!(RowIndexMatch);

/// The `RowEmbeddingsRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RowEmbeddingsRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `vector`.
    pub vector: Vec<f32>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `limit`.
    pub limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `collection`.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `schema_name`.
    pub schema_name: String,
    /// Wire field `index_name`.
    pub index_name: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `attributes`.
    pub attributes: serde_json::Map<String, serde_json::Value>,
    /// Model that made the vectors; empty when the sender does not say. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
}

impl Default for RowEmbeddingsRequest {
    fn default() -> Self {
        Self {
            vector: Default::default(),
            limit: 10,
            collection: Default::default(),
            schema_name: Default::default(),
            index_name: None,
            attributes: Default::default(),
            model: Default::default(),
        }
    }
}

message!(RowEmbeddingsRequest);

/// The `RowEmbeddingsResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RowEmbeddingsResponse {
    /// Wire field `error`.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `matches`.
    pub matches: Vec<RowIndexMatch>,
}

message!(RowEmbeddingsResponse);

/// The `RerankerQuery` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RerankerQuery {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `query_id`.
    pub query_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `query_text`.
    pub query_text: String,
}

message!(RerankerQuery);

/// The `RerankerDocument` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RerankerDocument {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `document_id`.
    pub document_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `document_text`.
    pub document_text: String,
}

message!(RerankerDocument);

/// The `RerankerRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RerankerRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `queries`.
    pub queries: Vec<RerankerQuery>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `documents`.
    pub documents: Vec<RerankerDocument>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `limit`.
    pub limit: i64,
}

impl Default for RerankerRequest {
    fn default() -> Self {
        Self {
            queries: Default::default(),
            documents: Default::default(),
            limit: 10,
        }
    }
}

message!(RerankerRequest);

/// The `RerankerResult` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RerankerResult {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `document_id`.
    pub document_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `query_id`.
    pub query_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `score`.
    pub score: f64,
}

message!(RerankerResult);

/// The `RerankerResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RerankerResponse {
    /// Wire field `error`.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `results`.
    pub results: Vec<RerankerResult>,
}

message!(RerankerResponse);
