//! Knowledge cores. Field names, order and defaults are the wire contract.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::embeddings::DocumentEmbeddings;
use super::embeddings::GraphEmbeddings;
use super::graph::Triples;
use super::lenient::nullable;
use super::message;
use crate::error::Error;

/// The `LibraryMetadata` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct LibraryMetadata {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `id`.
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `kind`.
    pub kind: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `title`.
    pub title: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `parent_id`.
    pub parent_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `document_type`.
    pub document_type: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `comments`.
    pub comments: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `tags`.
    pub tags: Vec<String>,
}

message!(LibraryMetadata);

/// The `LibraryBlob` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct LibraryBlob {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `id`.
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `data`.
    pub data: String,
    /// Where `data` starts in the content, in bytes. Ours, as all that follows.
    #[serde(deserialize_with = "nullable")]
    pub offset: i64,
    /// Bytes of the content that `data` is one part of; 0: `data` is the whole of it.
    #[serde(deserialize_with = "nullable")]
    pub total: i64,
}

message!(LibraryBlob);

/// The `KnowledgeRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct KnowledgeRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `operation`.
    pub operation: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `id`.
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `flow`.
    pub flow: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `collection`.
    pub collection: String,
    /// Wire field `triples`.
    pub triples: Option<Triples>,
    /// Wire field `graph_embeddings`.
    pub graph_embeddings: Option<GraphEmbeddings>,
    /// Wire field `document_embeddings`.
    pub document_embeddings: Option<DocumentEmbeddings>,
    /// Wire field `library_metadata`.
    pub library_metadata: Option<LibraryMetadata>,
    /// Wire field `library_blob`.
    pub library_blob: Option<LibraryBlob>,
}

message!(KnowledgeRequest);

/// The `KnowledgeResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct KnowledgeResponse {
    /// Wire field `error`.
    pub error: Option<Error>,
    /// Wire field `ids`.
    pub ids: Option<Vec<String>>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `eos`.
    pub eos: bool,
    /// Wire field `triples`.
    pub triples: Option<Triples>,
    /// Wire field `graph_embeddings`.
    pub graph_embeddings: Option<GraphEmbeddings>,
    /// Wire field `document_embeddings`.
    pub document_embeddings: Option<DocumentEmbeddings>,
    /// Wire field `library_metadata`.
    pub library_metadata: Option<LibraryMetadata>,
    /// Wire field `library_blob`.
    pub library_blob: Option<LibraryBlob>,
    /// What a load or an unload did, by kind: `triples`, `entities`, `chunks`, `records`. Ours.
    #[serde(deserialize_with = "nullable")]
    pub counts: BTreeMap<String, i64>,
}

message!(KnowledgeResponse);

impl KnowledgeResponse {
    /// The plain confirmation of an operation that returns nothing.
    pub fn carries_nothing(&self) -> bool {
        self.triples.is_none()
            && self.graph_embeddings.is_none()
            && self.document_embeddings.is_none()
            && self.library_metadata.is_none()
            && self.library_blob.is_none()
    }
}
