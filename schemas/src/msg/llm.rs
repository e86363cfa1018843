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
    /// Instructions for the model; empty: none.
    pub system: String,
    #[serde(deserialize_with = "nullable")]
    /// What is asked.
    pub prompt: String,
    #[serde(deserialize_with = "nullable")]
    /// Whether the answer is wanted piece by piece.
    pub streaming: bool,
    /// `json` where the answer is to be JSON; `None`: text.
    pub response_format: Option<String>,
    /// JSON Schema that the answer is to fit; `None`: any.
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
    /// When it was made, in seconds since 1970.
    pub created: Option<i64>,
    /// Wire field `description`.
    pub description: Option<String>,
    /// Tokens that the model can look at together.
    pub context_length: Option<i64>,
    /// Most tokens of an answer.
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
    /// Tokens that the model read; `None` where it did not say.
    pub in_token: Option<i64>,
    /// Tokens that the model wrote; `None` where it did not say.
    pub out_token: Option<i64>,
    /// The model that answered; `None` where it did not say.
    pub model: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// Whether nothing follows.
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
    /// The answer as text; empty where `object` has it.
    pub text: String,
    #[serde(deserialize_with = "nullable")]
    /// The answer as JSON text; empty where `text` has it.
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
    /// Values of the template by name, each as JSON text.
    pub terms: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    /// Whether the answer is wanted piece by piece.
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
    /// The answer as text; empty where `object` has it.
    pub text: String,
    #[serde(deserialize_with = "nullable")]
    /// The answer as JSON text; empty where `text` has it.
    pub object: String,
    #[serde(deserialize_with = "nullable")]
    /// Whether nothing follows.
    pub end_of_stream: bool,
    /// Tokens that the model read; `None` where it did not say.
    pub in_token: Option<i64>,
    /// Tokens that the model wrote; `None` where it did not say.
    pub out_token: Option<i64>,
    /// The model that answered; `None` where it did not say.
    pub model: Option<String>,
    /// Lines of a JSONL reply that could not be used. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub dropped: i64,
}

message!(PromptResponse);
