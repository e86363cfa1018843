//! Embeddings, vector, keyword and row look-ups. Field names, order and defaults are the wire contract.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;
use super::metadata::Metadata;
use crate::error::Error;
use crate::rdf::Term;

/// An entity of the graph with its vector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct EntityEmbeddings {
    /// The entity, an IRI as a rule; required.
    pub entity: Option<Term>,
    #[serde(deserialize_with = "nullable")]
    /// The vector; all of one collection and model have the same length. Required.
    pub vector: Vec<f32>,
    #[serde(deserialize_with = "nullable")]
    /// Id of the chunk that mentions the entity; empty: the id in the record's metadata.
    pub chunk_id: String,
    #[serde(deserialize_with = "nullable")]
    /// IRIs of the entity's types, to filter by.
    pub rdf_type: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// What searches may filter by: text, number or truth value, or a list of these, by name.
    pub attributes: serde_json::Map<String, serde_json::Value>,
    /// Who found it, and how: see [`super::made_by`]. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub made_by: String,
    /// The text that the vector was made of, so that another model can make another one. Ours, too.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub text: String,
}

message!(EntityEmbeddings);

/// Vectors of entities, for the vector store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct GraphEmbeddings {
    /// What the vectors are of, and the collection they go to.
    pub metadata: Option<Metadata>,
    #[serde(deserialize_with = "nullable")]
    /// The entities.
    pub entities: Vec<EntityEmbeddings>,
    /// Model that made the vectors; empty when the sender does not say. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
}

message!(GraphEmbeddings, metadata);

/// A chunk of a document with its vector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ChunkEmbeddings {
    #[serde(deserialize_with = "nullable")]
    /// Id of the chunk in the library; required.
    pub chunk_id: String,
    #[serde(deserialize_with = "nullable")]
    /// The vector; all of one collection and model have the same length. Required.
    pub vector: Vec<f32>,
    #[serde(deserialize_with = "nullable")]
    /// What searches may filter by: text, number or truth value, or a list of these, by name.
    pub attributes: serde_json::Map<String, serde_json::Value>,
    /// The text that the vector was made of, so that another model can make another one. Ours: foreign peers ignore it.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub text: String,
}

message!(ChunkEmbeddings);

/// Vectors of chunks, for the vector store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct DocumentEmbeddings {
    /// What the vectors are of, and the collection they go to.
    pub metadata: Option<Metadata>,
    #[serde(deserialize_with = "nullable")]
    /// The chunks.
    pub chunks: Vec<ChunkEmbeddings>,
    /// Model that made the vectors; empty when the sender does not say. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
}

message!(DocumentEmbeddings, metadata);

/// The vector of one value of a row's index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RowIndexEmbedding {
    #[serde(deserialize_with = "nullable")]
    /// Name of the index: the field, or fields with commas between them. Required.
    pub index_name: String,
    #[serde(deserialize_with = "nullable")]
    /// The values of the index's fields, in its order.
    pub index_value: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// The text that the vector was made of.
    pub text: String,
    #[serde(deserialize_with = "nullable")]
    /// The vector; all of one collection and model have the same length. Required.
    pub vector: Vec<f32>,
    #[serde(deserialize_with = "nullable")]
    /// What searches may filter by: text, number or truth value, or a list of these, by name.
    pub attributes: serde_json::Map<String, serde_json::Value>,
}

message!(RowIndexEmbedding);

/// Vectors of rows, for the vector store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RowEmbeddings {
    /// What the vectors are of, and the collection they go to.
    pub metadata: Option<Metadata>,
    #[serde(deserialize_with = "nullable")]
    /// Schema of the rows (config type `schema`).
    pub schema_name: String,
    #[serde(deserialize_with = "nullable")]
    /// One for each index of each row.
    pub embeddings: Vec<RowIndexEmbedding>,
    /// Model that made the vectors; empty when the sender does not say. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
    /// Who found the rows, and how: see [`super::made_by`]. Ours, too.
    #[serde(deserialize_with = "nullable")]
    pub made_by: String,
}

message!(RowEmbeddings, metadata);

/// Asks for vectors of texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct EmbeddingsRequest {
    #[serde(deserialize_with = "nullable")]
    /// The texts; the answer keeps their order.
    pub texts: Vec<String>,
    /// The asker reads [`EmbeddingsResponse::packed`]. Ours: foreign peers ignore it and answer with `vectors`.
    #[serde(deserialize_with = "nullable")]
    pub packed: bool,
    /// `status`: how it stands with the server that makes vectors, instead of vectors. Empty: vectors. Ours, too.
    #[serde(deserialize_with = "nullable")]
    pub operation: String,
    /// Only this model may make them, named as in [`EmbeddingsResponse::model`]; an error where it is not served. Empty: the
    /// flow's own. Ours, too.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
}

message!(EmbeddingsRequest);

/// The vectors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct EmbeddingsResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// One for each text, in the order asked for. Empty where `packed` has them.
    pub vectors: Vec<Vec<f32>>,
    /// Model that made the vectors; empty when the sender does not say. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
    /// Instead of `vectors` for who asked so: all of them, one after the other, as little-endian `f32` in base64
    /// (RFC 4648). Numbers written out cost more than the making of many vectors.
    #[serde(deserialize_with = "nullable")]
    pub packed: String,
    /// The answer to `status`: a sentence; empty where no server makes vectors.
    #[serde(deserialize_with = "nullable")]
    pub status: String,
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
        let mut answer = EmbeddingsResponse::new(&uneven, "".into(), true);
        assert_eq!(answer.take_vectors(2), Some(uneven.to_vec()));
        let mut odd = EmbeddingsResponse::default();
        odd.packed.push_str("AAA=");
        assert_eq!(odd.take_vectors(1), None);
        assert_eq!(EmbeddingsResponse::default().take_vectors(0), Some(vec![]));
    }
}

/// Asks for the entities whose vectors are nearest to one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct GraphEmbeddingsRequest {
    #[serde(deserialize_with = "nullable")]
    /// The vector to search with. Empty: nothing is found.
    pub vector: Vec<f32>,
    #[serde(deserialize_with = "nullable")]
    /// Most entities of the answer; 0 or less: 10.
    pub limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Collection to search in.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// Only entities of this type, an IRI; empty: of all.
    pub rdf_type: String,
    #[serde(deserialize_with = "nullable")]
    /// Only those that have all of these; a list means that each of its values is there. Empty: all.
    pub attributes: serde_json::Map<String, serde_json::Value>,
    /// Model that made the vectors; empty when the sender does not say. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
    /// Where the vectors of the collection are of another model the answer names it, instead of failing. Ours, too.
    #[serde(deserialize_with = "nullable")]
    pub tell_model: bool,
    /// Instead of a search: all vectors of the collection as they were written, page by page. Ours, as `after`.
    #[serde(deserialize_with = "nullable")]
    pub export: bool,
    /// Where the page begins: `next` of the page before; empty: the first page.
    #[serde(deserialize_with = "nullable")]
    pub after: String,
}

message!(GraphEmbeddingsRequest);

/// An entity that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct EntityMatch {
    /// The entity.
    pub entity: Option<Term>,
    #[serde(deserialize_with = "nullable")]
    /// Cosine of the two vectors, from -1 to 1; the best come first.
    pub score: f64,
    #[serde(deserialize_with = "nullable")]
    /// IRIs of its types, as they were stored.
    pub rdf_type: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Its attributes, as they were stored.
    pub attributes: serde_json::Map<String, serde_json::Value>,
}

message!(EntityMatch);

/// The entities that were found, each once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct GraphEmbeddingsResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// The best first.
    pub entities: Vec<EntityMatch>,
    /// Nothing was searched: the vectors are of this model; for who asked with `tell_model`. `export`: of `stored`. Ours.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
    /// `export`: this is a page; who knows of none says nothing. Ours, as all that follows.
    #[serde(deserialize_with = "nullable")]
    pub page: bool,
    /// `export`: vectors as they were written.
    #[serde(deserialize_with = "nullable")]
    pub stored: Vec<EntityEmbeddings>,
    /// `export`: where the next page begins; empty: this was the last.
    #[serde(deserialize_with = "nullable")]
    pub next: String,
}

message!(GraphEmbeddingsResponse);

/// Asks for the chunks whose vectors are nearest to one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct DocumentEmbeddingsRequest {
    #[serde(deserialize_with = "nullable")]
    /// The vector to search with. Empty: nothing is found.
    pub vector: Vec<f32>,
    #[serde(deserialize_with = "nullable")]
    /// Most chunks of the answer; 0 or less: 10.
    pub limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Collection to search in.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// Only those that have all of these; a list means that each of its values is there. Empty: all.
    pub attributes: serde_json::Map<String, serde_json::Value>,
    /// Model that made the vectors; empty when the sender does not say. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
    /// Where the vectors of the collection are of another model the answer names it, instead of failing. Ours, too.
    #[serde(deserialize_with = "nullable")]
    pub tell_model: bool,
    /// Instead of a search: all vectors of the collection as they were written, page by page. Ours, as `after`.
    #[serde(deserialize_with = "nullable")]
    pub export: bool,
    /// Where the page begins: `next` of the page before; empty: the first page.
    #[serde(deserialize_with = "nullable")]
    pub after: String,
}

message!(DocumentEmbeddingsRequest);

/// A chunk that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ChunkMatch {
    #[serde(deserialize_with = "nullable")]
    /// Id of the chunk in the library.
    pub chunk_id: String,
    #[serde(deserialize_with = "nullable")]
    /// How well it fits; the larger the better. Of vectors: their cosine, from -1 to 1; of keywords: the BM25 weight.
    pub score: f64,
    #[serde(deserialize_with = "nullable")]
    /// Its attributes, as they were stored; none from the keyword index.
    pub attributes: serde_json::Map<String, serde_json::Value>,
}

message!(ChunkMatch);

/// The chunks that were found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct DocumentEmbeddingsResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// The best first.
    pub chunks: Vec<ChunkMatch>,
    /// Nothing was searched: the vectors are of this model; for who asked with `tell_model`. `export`: of `stored`. Ours.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
    /// `export`: this is a page; who knows of none says nothing. Ours, as all that follows.
    #[serde(deserialize_with = "nullable")]
    pub page: bool,
    /// `export`: vectors as they were written.
    #[serde(deserialize_with = "nullable")]
    pub stored: Vec<ChunkEmbeddings>,
    /// `export`: where the next page begins; empty: this was the last.
    #[serde(deserialize_with = "nullable")]
    pub next: String,
}

message!(DocumentEmbeddingsResponse);

/// Asks for the chunks that have the words of a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct KeywordIndexRequest {
    #[serde(deserialize_with = "nullable")]
    /// The question in any words; its signs have no meaning. A chunk with one of the words is found.
    pub query: String,
    #[serde(deserialize_with = "nullable")]
    /// Most chunks of the answer; 0 or less: 20.
    pub limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Collection to search in.
    pub collection: String,
}

message!(KeywordIndexRequest);

/// The chunks that were found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct KeywordIndexResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// The best first.
    pub chunks: Vec<ChunkMatch>,
}

message!(KeywordIndexResponse);

/// An index value of a row that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RowIndexMatch {
    #[serde(deserialize_with = "nullable")]
    /// Name of the index: the field, or fields with commas between them.
    pub index_name: String,
    #[serde(deserialize_with = "nullable")]
    /// The values of the index's fields, by which the row can be asked for.
    pub index_value: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// The text that the vector was made of.
    pub text: String,
    #[serde(deserialize_with = "nullable")]
    /// Cosine of the two vectors, from -1 to 1; the best come first.
    pub score: f64,
    #[serde(deserialize_with = "nullable")]
    /// Its attributes, as they were stored.
    pub attributes: serde_json::Map<String, serde_json::Value>,
}

message!(RowIndexMatch);

/// Asks for the rows whose vectors are nearest to one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RowEmbeddingsRequest {
    #[serde(deserialize_with = "nullable")]
    /// The vector to search with. Empty: nothing is found.
    pub vector: Vec<f32>,
    #[serde(deserialize_with = "nullable")]
    /// Most matches of the answer; 0 or less: 10, which is also what is meant if it is left out.
    pub limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// Collection to search in.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// Schema of the rows; required.
    pub schema_name: String,
    /// Only this index; `None` or empty: all.
    pub index_name: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// Only those that have all of these; a list means that each of its values is there. Empty: all.
    pub attributes: serde_json::Map<String, serde_json::Value>,
    /// Model that made the vectors; empty when the sender does not say. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
    /// Where the vectors of the collection are of another model the answer names it, instead of failing. Ours, too.
    #[serde(deserialize_with = "nullable")]
    pub tell_model: bool,
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
            tell_model: false,
        }
    }
}

message!(RowEmbeddingsRequest);

/// The index values that were found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RowEmbeddingsResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// The best first.
    pub matches: Vec<RowIndexMatch>,
    /// Nothing was searched: the vectors of the collection are of this model. Only for who asked with `tell_model`. Ours.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
}

message!(RowEmbeddingsResponse);
