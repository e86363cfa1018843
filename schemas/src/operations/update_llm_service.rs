//! `update-llm-service`: changes an LLM service of a workspace.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::llm_services::LlmService;
use super::records::Empty;
use super::surface::{CONFIG_WRITE, OF_WORKSPACE, SESSIONS, SINCE};
use super::workspace_agents::{present, said};
use crate::topic::Class;

/// What changes; a field that is left out stays, and `null` clears one that may be empty. Any other field is refused.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct LlmServiceChange {
    /// Id of the service.
    #[serde(rename = "llm_service_id")]
    pub llm_service_id: String,
    /// Its name, 1 to 200 characters.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is for.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub description: Option<Option<String>>,
    /// `active`, `deprecated` or `experimental`.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Who runs it. `openai`, `openrouter` and `ollama` answer.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The program that runs the model.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub engine: Option<Option<String>>,
    /// The name of the model there.
    #[serde(
        alias = "model_name",
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub model_name: Option<String>,
    /// Its version.
    #[serde(
        alias = "model_version",
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    pub model_version: Option<Option<String>>,
    /// Tokens that the model reads at once.
    #[serde(
        alias = "context_window_tokens",
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    pub context_window_tokens: Option<Option<i64>>,
    /// Most tokens of a reply; `null`: the operator's setting, 1024 by default.
    #[serde(
        alias = "max_output_tokens",
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_output_tokens: Option<Option<i64>>,
    /// Least temperature that the model takes.
    #[serde(
        alias = "temperature_min",
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    pub temperature_min: Option<Option<f64>>,
    /// Highest temperature that the model takes.
    #[serde(
        alias = "temperature_max",
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    pub temperature_max: Option<Option<f64>>,
    /// Whether it answers piece by piece.
    #[serde(
        alias = "supports_streaming",
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    pub supports_streaming: Option<Option<bool>>,
    /// Whether it calls tools; `false`: it is offered none.
    #[serde(
        alias = "supports_tools",
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    pub supports_tools: Option<Option<bool>>,
    /// Address of the server; `null`: the usual one of the provider.
    #[serde(
        alias = "endpoint_base_url",
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    pub endpoint_base_url: Option<Option<String>>,
    /// Path that is put behind the address.
    #[serde(
        alias = "endpoint_path",
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    pub endpoint_path: Option<Option<String>>,
    /// Longest time of a reply, in milliseconds.
    #[serde(
        alias = "request_timeout_ms",
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    pub request_timeout_ms: Option<Option<i64>>,
    /// Most requests in one batch.
    #[serde(
        alias = "max_batch_size",
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_batch_size: Option<Option<i64>>,
    /// `none`, `api_key`, `oauth2` or `mTLS`.
    #[serde(
        alias = "auth_type",
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub auth_type: Option<String>,
    /// Where the credential is: `env:NAME` or `file:PATH`, and never the credential itself.
    #[serde(
        alias = "credential_ref",
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    pub credential_ref: Option<Option<String>>,
    /// Languages that the model knows.
    #[serde(
        alias = "supported_languages",
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub supported_languages: Option<Vec<String>>,
    /// What the model reads.
    #[serde(
        alias = "supported_content",
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub supported_content: Option<Vec<String>>,
}

/// The operation.
pub struct UpdateLlmService;

impl Operation for UpdateLlmService {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "update-llm-service",
        summary: "Changes an LLM service of a workspace.",
        capability: CONFIG_WRITE,
        method: "PATCH",
        path: "/api/v1/workspaces/{workspace}/llm-services/{llm_service_id}",
        status: 200,
        stream: "",
        id_key: OF_WORKSPACE,
        headers: &[],
        query: &[],
        class: Class::Request,
        effect: Effect::Write,
        asks_models: false,
        since: SINCE,
    };
    type Request = LlmServiceChange;
    type Reply = LlmService;
    type Chunk = Empty;
    type Error = Failure;
}
