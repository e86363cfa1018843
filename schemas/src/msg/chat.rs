//! Chats with a model: turns, tools, and the state of its backends. Between our own processors only.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::llm::ModelInfo;
use super::message;
use crate::error::Error;

/// A call of a tool that a model wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ChatToolCall {
    #[serde(deserialize_with = "nullable")]
    /// Id that its result carries.
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    /// Name of the tool.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// Arguments as a JSON object in text.
    pub arguments: String,
}

message!(ChatToolCall);

/// One turn of a chat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ChatTurn {
    #[serde(deserialize_with = "nullable")]
    /// `system`, `user`, `assistant` or `tool`.
    pub role: String,
    #[serde(deserialize_with = "nullable")]
    /// The text of the message.
    pub content: String,
    #[serde(deserialize_with = "nullable")]
    /// Of the assistant: the tools that it calls.
    pub tool_calls: Vec<ChatToolCall>,
    /// Of a tool: the call whose result it is.
    pub tool_call_id: Option<String>,
    /// Name of who speaks.
    pub name: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// Of the user: pictures, each an address that holds it (`data:`) or where it is (`https:`).
    pub images: Vec<String>,
}

message!(ChatTurn);

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ChatTool {
    #[serde(deserialize_with = "nullable")]
    /// Its name.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments; `None`: it takes none.
    pub parameters: Option<serde_json::Map<String, serde_json::Value>>,
}

message!(ChatTool);

/// A question to the model of a flow, or about its backends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ChatCompletionRequest {
    #[serde(deserialize_with = "nullable")]
    /// `completion` (also if left out), `list-models`, `route` or `health`.
    pub operation: String,
    /// The model; `None`: that of the flow.
    pub model: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// Models to be asked in this order where the first cannot; `health`: those that are asked about.
    pub models: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// The chat, oldest first.
    pub messages: Vec<ChatTurn>,
    #[serde(deserialize_with = "nullable")]
    /// Tools that the model may call.
    pub tools: Vec<ChatTool>,
    /// `auto`, `none`, `required` or the name of the tool to call; `None`: as the model does.
    pub tool_choice: Option<String>,
    /// Sampling temperature; `None`: that of the flow.
    pub temperature: Option<f64>,
    /// Share of the likeliest words that is chosen from; `None`: as the model does.
    pub top_p: Option<f64>,
    /// Most tokens of the answer; `None`: as many as the model writes.
    pub max_tokens: Option<i64>,
    #[serde(deserialize_with = "nullable")]
    /// Texts at which the answer ends.
    pub stop: Vec<String>,
    /// `json` where the answer is to be JSON; `None`: text.
    pub response_format: Option<String>,
    /// JSON Schema that the answer is to fit; `None`: any.
    pub schema: Option<serde_json::Map<String, serde_json::Value>>,
    #[serde(deserialize_with = "nullable")]
    /// Whether the answer is wanted piece by piece.
    pub streaming: bool,
}

message!(ChatCompletionRequest);

/// What a call used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ChatUsage {
    /// Tokens that the model read.
    pub input: i64,
    /// Tokens that it wrote.
    pub output: i64,
    /// Of those that it read, what the provider had kept.
    pub cache_read: i64,
    /// Tokens that it keeps from now on.
    pub cache_write: i64,
    /// All of them.
    pub total: i64,
    /// Whether `output` is an estimate by the length of the answer.
    pub estimated: bool,
}

message!(ChatUsage);

/// How it stands with a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ModelHealth {
    /// The model.
    pub model: String,
    /// Who offers it; empty: nobody is known who does.
    pub provider: String,
    /// Whether it may be asked now.
    pub available: bool,
    /// Why it may not.
    pub reason: Option<String>,
}

message!(ModelHealth);

/// What a process reports to the others about a backend that failed, or that answers again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ModelRest {
    /// The process.
    pub process: String,
    /// The backend, by its name in the settings.
    pub backend: String,
    /// What it calls the model.
    pub model: String,
    /// Failures in a row; 0: it answers again.
    pub failures: i64,
    /// For how many milliseconds it is left alone from now on.
    pub rest_ms: i64,
}

message!(ModelRest);

/// A backend, as a question for a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RouteBackend {
    /// Its name.
    pub backend: String,
    /// Who offers it.
    pub provider: String,
    /// What it calls the model; `None`: it does not have it.
    pub model: Option<String>,
    /// `chosen`, `next` or `skipped`.
    pub state: String,
    /// Why, in words.
    pub reason: String,
    /// Until when it is skipped, in seconds since 1970; `None`: for no time that is known.
    pub until: Option<i64>,
    /// Failures in a row.
    pub failures: i64,
    /// Lower is preferred.
    pub priority: i64,
    /// Questions that it answers now.
    pub active: i64,
    /// Most questions that it answers at once.
    pub max_concurrent: i64,
    /// Tokens that it may still be sent in this minute.
    pub tokens_left: i64,
    /// Tokens that it may be sent a minute.
    pub tokens_per_minute: i64,
}

message!(RouteBackend);

/// Whom a question for a model would go to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ModelRoute {
    /// The model.
    pub model: String,
    /// By what is chosen: `failover`, `round-robin`, `least-loaded`, or `single` where there is one backend.
    pub strategy: String,
    /// The backend that would be asked first; `None`: none can be.
    pub chosen: Option<String>,
    /// All backends, in the order of the settings.
    pub backends: Vec<RouteBackend>,
}

message!(ModelRoute);

/// One part of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ChatCompletionResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    /// Of an error: its kind, if its type is too general, such as `model_not_found`.
    pub failure: Option<String>,
    /// Of an error: after how many seconds it may succeed.
    pub retry_after: Option<i64>,
    #[serde(deserialize_with = "nullable")]
    /// What is new of the text.
    pub delta: String,
    #[serde(deserialize_with = "nullable")]
    /// The whole text, in the last part of an answer that does not come in pieces.
    pub content: String,
    #[serde(deserialize_with = "nullable")]
    /// What the model thinks before it answers: of a stream what is new, else all of it in the last part. No part of the
    /// text.
    pub thinking: String,
    #[serde(deserialize_with = "nullable")]
    /// In the last part: the tools that the model calls.
    pub tool_calls: Vec<ChatToolCall>,
    /// In the last part: `stop`, `length` or `tool_calls`.
    pub finish_reason: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// The backend that answered, where there are several.
    pub backend: Option<String>,
    /// How often a backend was asked for it; `None` where nobody counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<i64>,
    /// What the call used.
    pub usage: Option<ChatUsage>,
    /// Cost in dollars, if the provider reports it.
    pub cost: Option<f64>,
    #[serde(deserialize_with = "nullable")]
    /// Whether nothing follows.
    pub end_of_stream: bool,
    #[serde(deserialize_with = "nullable")]
    /// `list-models`: the models.
    pub models: Vec<ModelInfo>,
    #[serde(deserialize_with = "nullable")]
    /// `health`: the models and how it stands with them.
    pub health: Vec<ModelHealth>,
    /// `route`: whom a question would go to.
    pub route: Option<ModelRoute>,
}

message!(ChatCompletionResponse);
