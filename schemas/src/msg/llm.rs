//! Text completion, prompts, tools. Field names, order and defaults are the wire contract.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::lenient::{is_zero, nullable, string_map};
use super::message;
use crate::error::Error;

/// Which model answers, and how: the settings of an agent, which replace those of its flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ModelSettings {
    #[serde(deserialize_with = "nullable")]
    /// The model; empty: that of the flow.
    pub model: String,
    #[serde(deserialize_with = "nullable")]
    /// Models to be asked in this order where the first cannot answer.
    pub models: Vec<String>,
    /// Most tokens of a reply; `None`: as many as the model writes.
    pub max_tokens: Option<i64>,
    /// Sampling temperature; `None`: that of the flow.
    pub temperature: Option<f64>,
    /// The LLM service of the workspace that answers; `None`: the provider of the flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ModelService>,
}

message!(ModelSettings);

/// An LLM service of a workspace. It names the place of its credential, and never holds the credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ModelService {
    #[serde(deserialize_with = "nullable")]
    /// Who runs it: `openai`, `openrouter` or `ollama`.
    pub provider: String,
    #[serde(deserialize_with = "nullable")]
    /// Its address, up to and including the version; empty: the usual one of the provider.
    pub url: String,
    #[serde(deserialize_with = "nullable")]
    /// Reference of its credential, as the operator lists it; empty: it has none.
    pub credential: String,
    #[serde(deserialize_with = "nullable")]
    /// Longest time of a reply, in milliseconds; 0: as long as there is.
    pub timeout_ms: i64,
}

message!(ModelService);

impl ModelSettings {
    /// These settings, unless all are unset.
    pub fn said(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

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
    /// Whether what a reasoning model thinks is wanted as well. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub thinking: bool,
    /// The asker's settings of the model; `None`: those of the flow. Ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<ModelSettings>,
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
            thinking: false,
            settings: None,
        }
    }
}

message!(TextCompletionRequest);

/// What a provider reports about a model; `None` or empty: not reported.
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
    /// Input tokens; `None`: not reported.
    pub in_token: Option<i64>,
    /// Output tokens; `None`: not reported.
    pub out_token: Option<i64>,
    /// The model that answered; `None`: not reported.
    pub model: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// Whether nothing follows.
    pub end_of_stream: bool,
    #[serde(deserialize_with = "nullable")]
    /// `list-models`: the models.
    pub models: Vec<ModelInfo>,
    /// Where it is wanted: what the model thinks, of a stream what is new; no part of the answer. Ours: foreign peers
    /// ignore it.
    #[serde(deserialize_with = "nullable")]
    pub thinking: String,
    /// Input tokens that came from the provider's cache; `None`: not reported. Ours, like the fields that follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<i64>,
    /// Cost in dollars; `None`: the provider reported none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Tokens that the provider added to its cache; `None`: not reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<i64>,
    /// The backend that answered, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// How often a backend was asked for it; `None` where nobody counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<i64>,
}

message!(TextCompletionResponse);

/// A call of a tool on an MCP server, or what tools one has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ToolRequest {
    #[serde(deserialize_with = "nullable")]
    /// Name of the tool: the key of its row of type `mcp`; with `server`, its name there.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// Arguments as a JSON object in text; empty: none.
    pub parameters: String,
    /// `list-tools`: which tools `server` has; empty: a call. Ours: foreign peers ignore it, and know no tool without a name.
    #[serde(deserialize_with = "nullable")]
    pub operation: String,
    /// Key of the row of type `mcp` whose server is meant; empty: `name` is the key. Ours.
    #[serde(deserialize_with = "nullable")]
    pub server: String,
    /// Whether pictures that the tool returns are wanted. Ours.
    #[serde(deserialize_with = "nullable")]
    pub pictures: bool,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    /// Depth that a question of the tool to an agent has: its `SPASS-Caller-Depth`; 0: nobody counts. Ours.
    pub caller_depth: i64,
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
    /// Tools of a server, where those were asked for. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub tools: Vec<McpTool>,
    /// Pictures that stand in the text, where they are wanted, in their order there. Ours.
    #[serde(deserialize_with = "nullable")]
    pub pictures: Vec<ToolPicture>,
}

message!(ToolResponse);

/// A picture that a tool returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ToolPicture {
    /// The picture, in base64.
    pub data: String,
    /// Its media type, such as `image/png`.
    pub mime_type: String,
    /// Where its marker begins in the text, in bytes.
    pub at: i64,
}

impl ToolPicture {
    /// What stands in the text for it.
    pub fn marker(&self) -> String {
        format!("[image, {}]", self.mime_type)
    }
}

/// A tool as its MCP server describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct McpTool {
    /// Its name at the server.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments, as text.
    pub schema: String,
    /// Its server declares that it changes nothing.
    pub read_only: bool,
    /// Its server declares that calling it twice does no harm.
    pub idempotent: bool,
}

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
    /// Whether what a reasoning model thinks is wanted as well. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub thinking: bool,
    /// The asker's settings of the model; `None`: those of the flow. Ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<ModelSettings>,
}

message!(PromptRequest);

/// One part of the model's answer: text or an object, depending on the prompt.
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
    /// Input tokens; `None`: not reported.
    pub in_token: Option<i64>,
    /// Output tokens; `None`: not reported.
    pub out_token: Option<i64>,
    /// The model that answered; `None`: not reported.
    pub model: Option<String>,
    /// Lines of a JSONL reply that could not be used. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub dropped: i64,
    /// Where no line could be used: how the model's reply begins. Ours: foreign peers ignore it.
    #[serde(deserialize_with = "nullable")]
    pub unusable: String,
    /// Where it is wanted, of a prompt for text: what the model thinks, of a stream what is new. Ours: foreign peers
    /// ignore it.
    #[serde(deserialize_with = "nullable")]
    pub thinking: String,
    /// Input tokens that came from the provider's cache; `None`: not reported. Ours, like the fields that follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<i64>,
    /// Cost in dollars; `None`: the provider reported none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Tokens that the provider added to its cache; `None`: not reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<i64>,
    /// The backend that answered, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// How often a backend was asked for it; `None` where nobody counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<i64>,
}

message!(PromptResponse);
