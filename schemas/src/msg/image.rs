//! Image to text. Field names, order and defaults are the wire contract.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;
use crate::error::Error;

/// The `ImageToTextRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ImageToTextRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `image`.
    pub image: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `mime_type`.
    pub mime_type: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `prompt`.
    pub prompt: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `system`.
    pub system: String,
}

message!(ImageToTextRequest);

/// The `ImageToTextResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ImageToTextResponse {
    /// Wire field `error`.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `description`.
    pub description: String,
    /// Wire field `in_token`.
    pub in_token: Option<i64>,
    /// Wire field `out_token`.
    pub out_token: Option<i64>,
    /// Wire field `model`.
    pub model: Option<String>,
}

message!(ImageToTextResponse);
