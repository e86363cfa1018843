//! Image to text. Field names, order and defaults are the wire contract.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;
use crate::error::Error;

/// Asks what an image shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ImageToTextRequest {
    #[serde(deserialize_with = "nullable")]
    /// The image, in base64.
    pub image: String,
    #[serde(deserialize_with = "nullable")]
    /// Its media type, such as `image/png`.
    pub mime_type: String,
    #[serde(deserialize_with = "nullable")]
    /// What is asked; empty: a description.
    pub prompt: String,
    #[serde(deserialize_with = "nullable")]
    /// Instructions for the model; empty: none.
    pub system: String,
}

message!(ImageToTextRequest);

/// What an image shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ImageToTextResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// The answer as text.
    pub description: String,
    /// Tokens that the model read; `None` where it did not say.
    pub in_token: Option<i64>,
    /// Tokens that the model wrote; `None` where it did not say.
    pub out_token: Option<i64>,
    /// The model that answered; `None` where it did not say.
    pub model: Option<String>,
}

message!(ImageToTextResponse);
