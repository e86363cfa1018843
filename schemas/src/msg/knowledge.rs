//! Knowledge cores. Field names, order and defaults are the wire contract.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::embeddings::DocumentEmbeddings;
use super::embeddings::GraphEmbeddings;
use super::graph::Triples;
use super::lenient::{is_zero, nullable};
use super::message;
use crate::error::Error;

/// A document of the library in a knowledge core.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct LibraryMetadata {
    #[serde(deserialize_with = "nullable")]
    /// Id of the document, an IRI as a rule.
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    /// Media type of the content, such as `text/plain`.
    pub kind: String,
    #[serde(deserialize_with = "nullable")]
    /// Title; may be empty.
    pub title: String,
    #[serde(deserialize_with = "nullable")]
    /// Id of the document that this one was made of; empty: none.
    pub parent_id: String,
    #[serde(deserialize_with = "nullable")]
    /// `source`, `page`, `chunk`, `section`, `image`, `extracted` or `answer`; `source` if left out.
    pub document_type: String,
    #[serde(deserialize_with = "nullable")]
    /// Comments; may be empty.
    pub comments: String,
    #[serde(deserialize_with = "nullable")]
    /// Tags, in the order given.
    pub tags: Vec<String>,
}

message!(LibraryMetadata);

/// The content of a document in a knowledge core. Follows its [`LibraryMetadata`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct LibraryBlob {
    #[serde(deserialize_with = "nullable")]
    /// Id of the document.
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    /// The content, or a part of it, in base64 (RFC 4648) without line ends.
    pub data: String,
    /// Where `data` starts in the content, in bytes. Ours, as all that follows.
    #[serde(deserialize_with = "nullable")]
    pub offset: i64,
    /// Bytes of the content that `data` is one part of; 0: `data` is the whole of it.
    #[serde(deserialize_with = "nullable")]
    pub total: i64,
}

message!(LibraryBlob);

/// A question to the knowledge service. A core is a part of a workspace's knowledge under one id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct KnowledgeRequest {
    #[serde(deserialize_with = "nullable")]
    /// `list-kg-cores`, `get-kg-core`, `put-kg-core`, `delete-kg-core`, `load-kg-core`, `unload-kg-core`, and the
    /// same with `de` for cores of chunk vectors.
    pub operation: String,
    #[serde(deserialize_with = "nullable")]
    /// Id of the core; required for all but the lists.
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    /// `load-…` and `unload-…`: flow whose stores take it.
    pub flow: String,
    #[serde(deserialize_with = "nullable")]
    /// `load-…` and `unload-…`: collection that it goes to; empty: `default`.
    pub collection: String,
    /// `put-kg-core`: triples to add.
    pub triples: Option<Triples>,
    /// `put-kg-core`: entities with vectors to add.
    pub graph_embeddings: Option<GraphEmbeddings>,
    /// `put-de-core`: chunks with vectors to add.
    pub document_embeddings: Option<DocumentEmbeddings>,
    /// `put-kg-core`: a document to add.
    pub library_metadata: Option<LibraryMetadata>,
    /// `put-kg-core`: the content of a document that was added before, or a part of it.
    pub library_blob: Option<LibraryBlob>,
    /// A list: most entries of a page, at most 10,000. 0: all, or an error where one answer does not hold
    /// them; with `after` 1,000. Ours.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    pub limit: i64,
    /// The same: only what follows the page whose `next` said this. Ours.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub after: String,
}

message!(KnowledgeRequest);

/// One part of what the knowledge service answers; at most one field is filled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct KnowledgeResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    /// A list: the ids of the cores.
    pub ids: Option<Vec<String>>,
    #[serde(deserialize_with = "nullable")]
    /// Whether the core is complete and nothing follows.
    pub eos: bool,
    /// `get-kg-core`: some triples of the core.
    pub triples: Option<Triples>,
    /// `get-kg-core`: some entities with vectors.
    pub graph_embeddings: Option<GraphEmbeddings>,
    /// `get-de-core`: some chunks with vectors.
    pub document_embeddings: Option<DocumentEmbeddings>,
    /// `get-kg-core`: a document of the core.
    pub library_metadata: Option<LibraryMetadata>,
    /// `get-kg-core`: the content of the document before it, or a part of it.
    pub library_blob: Option<LibraryBlob>,
    /// What a load or an unload did, by kind: `triples`, `entities`, `chunks`, `records`. Ours.
    #[serde(deserialize_with = "nullable")]
    pub counts: BTreeMap<String, i64>,
    /// A listing: where the next page begins, for `after`; empty if there is none. Ours.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub next: String,
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
