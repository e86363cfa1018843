//! `create-llm-service`: adds an LLM service to a workspace.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::llm_services::LlmService;
use super::records::Empty;
use super::surface::{CONFIG_WRITE, OF_WORKSPACE, SESSIONS, SINCE};
use crate::topic::Class;

/// What the new LLM service is like.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct NewLlmService {
    /// Its id, a UUID; left out: a new one.
    #[serde(alias = "llm_service_id")]
    pub llm_service_id: Option<String>,
    /// Its name, 1 to 200 characters.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// `active`, `deprecated` or `experimental`.
    pub status: String,
    /// Who runs it. `openai`, `openrouter` and `ollama` answer.
    pub provider: String,
    /// The program that runs the model.
    pub engine: Option<String>,
    /// The name of the model there.
    #[serde(alias = "model_name")]
    pub model_name: String,
    /// Its version.
    #[serde(alias = "model_version")]
    pub model_version: Option<String>,
    /// Tokens that the model reads at once.
    #[serde(alias = "context_window_tokens")]
    pub context_window_tokens: Option<i64>,
    /// Most tokens of a reply; `null`: the operator's setting, 1024 by default.
    #[serde(alias = "max_output_tokens")]
    pub max_output_tokens: Option<i64>,
    /// Least temperature that the model takes.
    #[serde(alias = "temperature_min")]
    pub temperature_min: Option<f64>,
    /// Highest temperature that the model takes.
    #[serde(alias = "temperature_max")]
    pub temperature_max: Option<f64>,
    /// Whether it answers piece by piece.
    #[serde(alias = "supports_streaming")]
    pub supports_streaming: Option<bool>,
    /// Whether it calls tools; `false`: it is offered none.
    #[serde(alias = "supports_tools")]
    pub supports_tools: Option<bool>,
    /// Address of the server; `null`: the usual one of the provider.
    #[serde(alias = "endpoint_base_url")]
    pub endpoint_base_url: Option<String>,
    /// Path that is put behind the address.
    #[serde(alias = "endpoint_path")]
    pub endpoint_path: Option<String>,
    /// Longest time of a reply, in milliseconds.
    #[serde(alias = "request_timeout_ms")]
    pub request_timeout_ms: Option<i64>,
    /// Most requests in one batch.
    #[serde(alias = "max_batch_size")]
    pub max_batch_size: Option<i64>,
    /// `none`, `api_key`, `oauth2` or `mTLS`.
    #[serde(alias = "auth_type")]
    pub auth_type: String,
    /// Where the credential is: `env:NAME` or `file:PATH`, and never the credential itself.
    #[serde(alias = "credential_ref")]
    pub credential_ref: Option<String>,
    /// Languages that the model knows.
    #[serde(alias = "supported_languages")]
    pub supported_languages: Vec<String>,
    /// What the model reads.
    #[serde(alias = "supported_content")]
    pub supported_content: Vec<String>,
}

/// The operation.
pub struct CreateLlmService;

impl Operation for CreateLlmService {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "create-llm-service",
        summary: "Adds an LLM service to a workspace.",
        capability: CONFIG_WRITE,
        method: "POST",
        path: "/api/v1/workspaces/{workspace}/llm-services",
        status: 201,
        stream: "",
        id_key: OF_WORKSPACE,
        headers: &[],
        query: &[],
        class: Class::Request,
        effect: Effect::Write,
        asks_models: false,
        since: SINCE,
    };
    type Request = NewLlmService;
    type Reply = LlmService;
    type Chunk = Empty;
    type Error = Failure;
}
