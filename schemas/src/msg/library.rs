//! Documents and the librarian. Field names, order and defaults are the wire contract.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;
use super::metadata::Metadata;
use crate::error::Error;
use crate::rdf::Triple;

/// The `Document` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Document {
    /// Wire field `metadata`.
    pub metadata: Option<Metadata>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `data`.
    pub data: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `document_id`.
    pub document_id: String,
}

message!(Document);

/// The `TextDocument` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct TextDocument {
    /// Wire field `metadata`.
    pub metadata: Option<Metadata>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `text`.
    pub text: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `document_id`.
    pub document_id: String,
}

message!(TextDocument);

/// The `Chunk` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Chunk {
    /// Wire field `metadata`.
    pub metadata: Option<Metadata>,
    #[serde(deserialize_with = "nullable")]
    /// A piece of the content, in base64.
    pub chunk: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `document_id`.
    pub document_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `attributes`.
    pub attributes: serde_json::Map<String, serde_json::Value>,
}

message!(Chunk);

/// The `DocumentMetadata` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DocumentMetadata {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `id`.
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    /// When it was made, in seconds since 1970.
    pub time: i64,
    #[serde(deserialize_with = "nullable")]
    /// Media type of the content, such as `text/plain`.
    pub kind: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `title`.
    pub title: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `comments`.
    pub comments: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `metadata`.
    pub metadata: Vec<Triple>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `tags`.
    pub tags: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Id of the document that this one was made of; empty: none.
    pub parent_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `document_type`.
    pub document_type: String,
}

impl Default for DocumentMetadata {
    fn default() -> Self {
        Self {
            id: Default::default(),
            time: Default::default(),
            kind: Default::default(),
            title: Default::default(),
            comments: Default::default(),
            metadata: Default::default(),
            tags: Default::default(),
            parent_id: Default::default(),
            document_type: "source".to_owned(),
        }
    }
}

message!(DocumentMetadata);

/// What went wrong with one part of a document that is processed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ProcessingError {
    /// The page or chunk.
    #[serde(deserialize_with = "nullable")]
    pub subject: String,
    /// Processor that met the fault.
    #[serde(deserialize_with = "nullable")]
    pub processor: String,
    /// The fault, fit for clients.
    #[serde(deserialize_with = "nullable")]
    pub message: String,
}

message!(ProcessingError);

/// The `ProcessingMetadata` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ProcessingMetadata {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `id`.
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `document_id`.
    pub document_id: String,
    #[serde(deserialize_with = "nullable")]
    /// When it was made, in seconds since 1970.
    pub time: i64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `flow`.
    pub flow: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `collection`.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `tags`.
    pub tags: Vec<String>,
    /// `processing`, `complete`, `failed` or `stopped`. Ours, as all that follows.
    #[serde(deserialize_with = "nullable")]
    pub status: String,
    /// Why it failed or waits.
    #[serde(deserialize_with = "nullable")]
    pub error: String,
    /// What is done and known so far by kind: `records`, `pages`, `chunks`, `triples`, `vectors`, …, each with a `-total` beside it where one is known.
    #[serde(deserialize_with = "nullable")]
    pub progress: BTreeMap<String, i64>,
    /// What went wrong, by chunk or page.
    #[serde(deserialize_with = "nullable")]
    pub errors: Vec<ProcessingError>,
}

message!(ProcessingMetadata);

/// The `Criteria` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Criteria {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `key`.
    pub key: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `value`.
    pub value: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `operator`.
    pub operator: String,
}

message!(Criteria);

/// The `UploadProgress` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct UploadProgress {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `upload_id`.
    pub upload_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `chunks_received`.
    pub chunks_received: i64,
    #[serde(deserialize_with = "nullable")]
    /// Number of pieces.
    pub total_chunks: i64,
    #[serde(deserialize_with = "nullable")]
    /// Bytes that are safe.
    pub bytes_received: i64,
    #[serde(deserialize_with = "nullable")]
    /// Bytes of the whole content.
    pub total_bytes: i64,
}

message!(UploadProgress);

/// The `UploadSession` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct UploadSession {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `upload_id`.
    pub upload_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `document_id`.
    pub document_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `document_metadata_json`.
    pub document_metadata_json: String,
    #[serde(deserialize_with = "nullable")]
    /// Bytes of the whole content.
    pub total_size: i64,
    #[serde(deserialize_with = "nullable")]
    /// Bytes of each piece but the last.
    pub chunk_size: i64,
    #[serde(deserialize_with = "nullable")]
    /// Number of pieces.
    pub total_chunks: i64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `chunks_received`.
    pub chunks_received: i64,
    #[serde(deserialize_with = "nullable")]
    /// When it was made, as text in RFC 3339.
    pub created_at: String,
}

message!(UploadSession);

/// The `LibrarianRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct LibrarianRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `operation`.
    pub operation: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `document_id`.
    pub document_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `processing_id`.
    pub processing_id: String,
    /// Wire field `document_metadata`.
    pub document_metadata: Option<DocumentMetadata>,
    /// Wire field `processing_metadata`.
    pub processing_metadata: Option<ProcessingMetadata>,
    #[serde(deserialize_with = "nullable")]
    /// The content, in base64.
    pub content: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `collection`.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `criteria`.
    pub criteria: Vec<Criteria>,
    #[serde(deserialize_with = "nullable")]
    /// Bytes of the whole content.
    pub total_size: i64,
    #[serde(deserialize_with = "nullable")]
    /// Bytes of each piece but the last.
    pub chunk_size: i64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `upload_id`.
    pub upload_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Number of the piece, from 0.
    pub chunk_index: i64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `include_children`.
    pub include_children: bool,
    /// `add-processing`: only say what it would cost. Ours, as all that follows.
    #[serde(deserialize_with = "nullable")]
    pub dry_run: bool,
    /// `get-contents`: which documents.
    #[serde(deserialize_with = "nullable")]
    pub document_ids: Vec<String>,
    /// `add-children`, `add-documents`: what is added.
    #[serde(deserialize_with = "nullable")]
    pub document_metadatas: Vec<DocumentMetadata>,
    /// `add-children`, `add-documents`: content of each, base64.
    #[serde(deserialize_with = "nullable")]
    pub contents: Vec<String>,
    /// `stream-document`: exactly the chunk of `chunk_index`, as the one part of the answer.
    #[serde(deserialize_with = "nullable")]
    pub only_chunk: bool,
    /// `list-documents`, `list-children`, `list-processing`, `list-uploads`: most entries of the answer; 0 for all
    /// that one message carries.
    #[serde(deserialize_with = "nullable")]
    pub limit: i64,
    /// The same: only what follows the page whose `next` said this.
    #[serde(deserialize_with = "nullable")]
    pub after: String,
    /// `begin-upload`: the document may be there already; its content is replaced when the upload completes.
    #[serde(deserialize_with = "nullable")]
    pub replace: bool,
}

message!(LibrarianRequest);

/// The `LibrarianResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LibrarianResponse {
    /// Wire field `error`.
    pub error: Option<Error>,
    /// Wire field `document_metadata`.
    pub document_metadata: Option<DocumentMetadata>,
    #[serde(deserialize_with = "nullable")]
    /// The content, in base64.
    pub content: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `document_metadatas`.
    pub document_metadatas: Vec<DocumentMetadata>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `processing_metadatas`.
    pub processing_metadatas: Vec<ProcessingMetadata>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `upload_id`.
    pub upload_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Bytes of each piece but the last.
    pub chunk_size: i64,
    #[serde(deserialize_with = "nullable")]
    /// Number of pieces.
    pub total_chunks: i64,
    #[serde(deserialize_with = "nullable")]
    /// Number of the piece, from 0.
    pub chunk_index: i64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `chunks_received`.
    pub chunks_received: i64,
    #[serde(deserialize_with = "nullable")]
    /// Bytes that are safe.
    pub bytes_received: i64,
    #[serde(deserialize_with = "nullable")]
    /// Bytes of the whole content.
    pub total_bytes: i64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `document_id`.
    pub document_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `object_id`.
    pub object_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `upload_state`.
    pub upload_state: String,
    #[serde(deserialize_with = "nullable")]
    /// Numbers of the pieces that are safe.
    pub received_chunks: Vec<i64>,
    #[serde(deserialize_with = "nullable")]
    /// Numbers of the pieces that are still to come.
    pub missing_chunks: Vec<i64>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `upload_sessions`.
    pub upload_sessions: Vec<UploadSession>,
    #[serde(deserialize_with = "nullable")]
    /// Whether nothing follows.
    pub is_final: bool,
    /// `get-contents`: content of each document asked for, base64; empty where there is none. Ours.
    #[serde(deserialize_with = "nullable")]
    pub contents: Vec<String>,
    /// `add-processing` with `dry_run`: `bytes`, `pages`, `chunks`, `model-calls`, `tokens`. Ours.
    #[serde(deserialize_with = "nullable")]
    pub estimate: BTreeMap<String, i64>,
    /// A listing: where the next page begins, for `after`; empty if there is none. Ours.
    #[serde(deserialize_with = "nullable")]
    pub next: String,
}

impl Default for LibrarianResponse {
    fn default() -> Self {
        Self {
            error: None,
            document_metadata: None,
            content: Default::default(),
            document_metadatas: Default::default(),
            processing_metadatas: Default::default(),
            upload_id: Default::default(),
            chunk_size: Default::default(),
            total_chunks: Default::default(),
            chunk_index: Default::default(),
            chunks_received: Default::default(),
            bytes_received: Default::default(),
            total_bytes: Default::default(),
            document_id: Default::default(),
            object_id: Default::default(),
            upload_state: Default::default(),
            received_chunks: Default::default(),
            missing_chunks: Default::default(),
            upload_sessions: Default::default(),
            is_final: true,
            contents: Default::default(),
            estimate: Default::default(),
            next: Default::default(),
        }
    }
}

message!(LibrarianResponse);
