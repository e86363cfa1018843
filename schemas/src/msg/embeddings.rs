//! Embeddings, vector, keyword and row look-ups, the reranker. Field names, order and defaults are the wire contract.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
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
    /// The asker reads [`EmbeddingsResponse::packed`]. Ours: foreign peers ignore it and answer with `vectors`.
    #[serde(deserialize_with = "nullable")]
    pub packed: bool,
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
    /// Instead of `vectors` for who asked so: all of them, one after the other, as little-endian `f32` in base64
    /// (RFC 4648). Numbers written out cost more than the making of many vectors.
    #[serde(deserialize_with = "nullable")]
    pub packed: String,
}

message!(EmbeddingsResponse);

impl EmbeddingsResponse {
    /// An answer in the form that was asked for.
    pub fn new<V: AsRef<[f32]>>(vectors: &[V], model: String, packed: bool) -> Self {
        let length = vectors.first().map_or(0, |first| first.as_ref().len());
        let even = vectors.iter().all(|one| one.as_ref().len() == length);
        let numbers = vectors.iter().flat_map(AsRef::as_ref);
        let mut answer = Self {
            model,
            ..Self::default()
        };
        if packed && even && length > 0 {
            let bytes: Vec<u8> = numbers.flat_map(|part| part.to_le_bytes()).collect();
            answer.packed = STANDARD.encode(bytes);
        } else {
            answer.vectors = vectors.iter().map(|one| one.as_ref().to_vec()).collect();
        }
        answer
    }

    /// The vectors of `count` texts, in whichever form they came. `None` if they are not that many.
    pub fn take_vectors(&mut self, count: usize) -> Option<Vec<Vec<f32>>> {
        if self.packed.is_empty() {
            let vectors = std::mem::take(&mut self.vectors);
            return (vectors.len() == count).then_some(vectors);
        }
        let bytes = STANDARD.decode(std::mem::take(&mut self.packed)).ok()?;
        let (parts, rest) = bytes.as_chunks::<4>();
        let length = parts.len().checked_div(count)?;
        if length == 0 || !rest.is_empty() || length * count != parts.len() {
            return None;
        }
        let read = |vector: &[[u8; 4]]| vector.iter().copied().map(f32::from_le_bytes).collect();
        Some(parts.chunks_exact(length).map(read).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_come_in_either_form() {
        let vectors = vec![vec![1.0_f32, -0.5], vec![f32::MIN_POSITIVE, 3.25]];
        for packed in [true, false] {
            let mut answer = EmbeddingsResponse::new(&vectors, "m".into(), packed);
            assert_eq!(answer.vectors.is_empty(), packed);
            let mut again = answer.clone();
            assert_eq!(answer.take_vectors(2).as_ref(), Some(&vectors));
            assert_eq!(again.take_vectors(3), None);
        }
        let uneven = [vec![1.0_f32], vec![]];
        let mut answer = EmbeddingsResponse::new(&uneven, String::new(), true);
        assert_eq!(answer.take_vectors(2), Some(uneven.to_vec()));
        let mut odd = EmbeddingsResponse {
            packed: "AAA=".into(),
            ..EmbeddingsResponse::default()
        };
        assert_eq!(odd.take_vectors(1), None);
        assert_eq!(EmbeddingsResponse::default().take_vectors(0), Some(vec![]));
    }
}

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
