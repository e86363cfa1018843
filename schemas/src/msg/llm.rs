//! Text completion, prompts, tools. Field names, order and defaults are the wire contract.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::lenient::{nullable, string_map};
use super::message;
use crate::error::Error;

/// A question to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TextCompletionRequest {
    #[serde(deserialize_with = "nullable")]
    /// `completion` (also if left out), or `list-models`.
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

/// What a provider says of a model; `None` or empty where it does not say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ModelInfo {
    #[serde(deserialize_with = "nullable")]
    /// Id by which the model is asked for.
    pub id: String,
    /// Name for people.
    pub name: Option<String>,
    /// Who offers it.
    pub owned_by: Option<String>,
    /// When it was made, in seconds since 1970.
    pub created: Option<i64>,
    /// What it is good at.
    pub description: Option<String>,
    /// Tokens that the model can look at together.
    pub context_length: Option<i64>,
    /// Most tokens of an answer.
    pub max_output_length: Option<i64>,
    #[serde(deserialize_with = "nullable")]
    /// What it reads: `text`, `image` and so on.
    pub input_modalities: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// What it writes.
    pub output_modalities: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// What it can do besides, in the provider's words.
    pub supported_features: Vec<String>,
    /// Price of a token that it reads, in dollars. Ours does not fill it in.
    pub input_price: Option<f64>,
    /// Price of a token that it writes, in dollars. Ours does not fill it in.
    pub output_price: Option<f64>,
    /// Family of models that it belongs to.
    pub family: Option<String>,
    /// Number of its parameters, as text such as `8B`.
    pub parameter_size: Option<String>,
    /// How its numbers are stored, such as `Q4_K_M`.
    pub quantization: Option<String>,
    /// File format, such as `gguf`.
    pub format: Option<String>,
}

message!(ModelInfo);

/// One part of a model's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct TextCompletionResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// The text of this part; in a stream only what is new.
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
    /// `list-models`: the models.
    pub models: Vec<ModelInfo>,
}

message!(TextCompletionResponse);

/// A call of a tool on an MCP server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ToolRequest {
    #[serde(deserialize_with = "nullable")]
    /// Name of the tool: the key of its row of type `mcp`.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// Arguments as a JSON object in text; empty: none.
    pub parameters: String,
}

message!(ToolRequest);

/// What the tool returned: text or an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ToolResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// The answer as text; empty where `object` has it.
    pub text: String,
    #[serde(deserialize_with = "nullable")]
    /// The answer as JSON text; empty where `text` has it.
    pub object: String,
}

message!(ToolResponse);

/// Asks a model with a prompt of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct PromptRequest {
    #[serde(deserialize_with = "nullable")]
    /// Name of the prompt: the key `template.<id>` of type `prompt`.
    pub id: String,
    #[serde(deserialize_with = "string_map")]
    /// Values of the template by name, each as JSON text.
    pub terms: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    /// Whether the answer is wanted piece by piece.
    pub streaming: bool,
}

message!(PromptRequest);

/// One part of the model's answer: text or an object, as the prompt says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct PromptResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable", alias = "response")]
    /// The answer as text; empty where `object` has it. `response` in the parts of a model that the question was
    /// passed on to.
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
    /// Where no line could be used: how the model's reply begins. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub unusable: String,
}

message!(PromptResponse);
