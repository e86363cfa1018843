//! What a flow would do with a document, estimated before it does it. Only native processes exchange these.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;
use crate::error::Error;

/// Asks the chunker of a flow how it would cut a document, or who asks a model about chunks what that would take. Nothing is
/// written for it and no model is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct MeasureRequest {
    /// Document of the library; empty where `content` is the document.
    #[serde(deserialize_with = "nullable")]
    pub document_id: String,
    /// The document, in base64.
    #[serde(deserialize_with = "nullable")]
    pub content: String,
    /// Its media type.
    #[serde(deserialize_with = "nullable")]
    pub kind: String,
    /// Its title, which stands before its chunks.
    #[serde(deserialize_with = "nullable")]
    pub title: String,
    /// Whether it is taken apart before it is cut.
    #[serde(deserialize_with = "nullable")]
    pub take_apart: bool,
    /// Chunks as models read them.
    #[serde(deserialize_with = "nullable")]
    pub texts: Vec<String>,
}

message!(MeasureRequest);

/// What was measured. What was not asked for is 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct MeasureResponse {
    /// Why there is no answer.
    pub error: Option<Error>,
    /// Bytes of text that were read, where the document is longer; 0: all was read.
    #[serde(deserialize_with = "nullable")]
    pub bytes: i64,
    /// Pages with text.
    #[serde(deserialize_with = "nullable")]
    pub pages: i64,
    /// Chunks.
    #[serde(deserialize_with = "nullable")]
    pub chunks: i64,
    /// Chunks that a model is asked about: one of several that are the same, and none without a word.
    #[serde(deserialize_with = "nullable")]
    pub asked: i64,
    /// Tokens of all chunks, as models read them.
    #[serde(deserialize_with = "nullable")]
    pub tokens: i64,
    /// Tokens of those that a model is asked about. Of an extractor: of the texts in its prompts.
    #[serde(deserialize_with = "nullable")]
    pub asked_tokens: i64,
    /// Some of those that a model is asked about.
    #[serde(deserialize_with = "nullable")]
    pub samples: Vec<String>,
    /// Model calls about the texts.
    #[serde(deserialize_with = "nullable")]
    pub calls: i64,
    /// Tokens of the prompts with the texts in them.
    #[serde(deserialize_with = "nullable")]
    pub prompt_tokens: i64,
}

message!(MeasureResponse);
