//! Text completion, prompts, tools. Field names, order and defaults are the wire contract.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::lenient::{nullable, string_map};
use super::message;
use crate::error::Error;

/// The `TextCompletionRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TextCompletionRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `operation`.
    pub operation: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `system`.
    pub system: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `prompt`.
    pub prompt: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `streaming`.
    pub streaming: bool,
    /// Wire field `response_format`.
    pub response_format: Option<String>,
    /// Wire field `schema`.
    pub schema: Option<serde_json::Map<String, serde_json::Value>>,
}

impl Default for TextCompletionRequest {
    fn default() -> Self {
        Self {
            operation: "completion".to_owned(),
            system: Default::default(),
            prompt: Default::default(),
            streaming: Default::default(),
            response_format: None,
            schema: None,
        }
    }
}

message!(TextCompletionRequest);

/// The `ModelInfo` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ModelInfo {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `id`.
    pub id: String,
    /// Wire field `name`.
    pub name: Option<String>,
    /// Wire field `owned_by`.
    pub owned_by: Option<String>,
    /// Wire field `created`.
    pub created: Option<i64>,
    /// Wire field `description`.
    pub description: Option<String>,
    /// Wire field `context_length`.
    pub context_length: Option<i64>,
    /// Wire field `max_output_length`.
    pub max_output_length: Option<i64>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `input_modalities`.
    pub input_modalities: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `output_modalities`.
    pub output_modalities: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `supported_features`.
    pub supported_features: Vec<String>,
    /// Wire field `input_price`.
    pub input_price: Option<f64>,
    /// Wire field `output_price`.
    pub output_price: Option<f64>,
    /// Wire field `family`.
    pub family: Option<String>,
    /// Wire field `parameter_size`.
    pub parameter_size: Option<String>,
    /// Wire field `quantization`.
    pub quantization: Option<String>,
    /// Wire field `format`.
    pub format: Option<String>,
}

message!(ModelInfo);

/// The `TextCompletionResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct TextCompletionResponse {
    /// Wire field `error`.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `response`.
    pub response: String,
    /// Wire field `in_token`.
    pub in_token: Option<i64>,
    /// Wire field `out_token`.
    pub out_token: Option<i64>,
    /// Wire field `model`.
    pub model: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `end_of_stream`.
    pub end_of_stream: bool,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `models`.
    pub models: Vec<ModelInfo>,
}

message!(TextCompletionResponse);

/// The `ToolRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ToolRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `name`.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `parameters`.
    pub parameters: String,
}

message!(ToolRequest);

/// The `ToolResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ToolResponse {
    /// Wire field `error`.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `text`.
    pub text: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `object`.
    pub object: String,
}

message!(ToolResponse);

/// The `PromptRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct PromptRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `id`.
    pub id: String,
    #[serde(deserialize_with = "string_map")]
    /// Wire field `terms`.
    pub terms: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `streaming`.
    pub streaming: bool,
}

message!(PromptRequest);

/// The `PromptResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct PromptResponse {
    /// Wire field `error`.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `text`.
    pub text: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `object`.
    pub object: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `end_of_stream`.
    pub end_of_stream: bool,
    /// Wire field `in_token`.
    pub in_token: Option<i64>,
    /// Wire field `out_token`.
    pub out_token: Option<i64>,
    /// Wire field `model`.
    pub model: Option<String>,
    /// Lines of a JSONL reply that could not be used. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub dropped: i64,
}

message!(PromptResponse);
