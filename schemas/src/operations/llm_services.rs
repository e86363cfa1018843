//! LLM services of workspaces: where a model answers, and by which credential.

use serde::{Deserialize, Serialize};

/// An LLM service of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct LlmService {
    /// Its workspace.
    pub workspace_id: String,
    /// Its id.
    pub llm_service_id: String,
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
    pub model_name: String,
    /// Its version.
    pub model_version: Option<String>,
    /// Tokens that the model reads at once.
    pub context_window_tokens: Option<i64>,
    /// Most tokens of a reply; `null`: the operator's setting, 1024 by default.
    pub max_output_tokens: Option<i64>,
    /// Least temperature that the model takes.
    pub temperature_min: Option<f64>,
    /// Highest temperature that the model takes.
    pub temperature_max: Option<f64>,
    /// Whether it answers piece by piece.
    pub supports_streaming: Option<bool>,
    /// Whether it calls tools; `false`: it is offered none.
    pub supports_tools: Option<bool>,
    /// Address of the server; `null`: the usual one of the provider.
    pub endpoint_base_url: Option<String>,
    /// Path that is put behind the address.
    pub endpoint_path: Option<String>,
    /// Longest time of a reply, in milliseconds.
    pub request_timeout_ms: Option<i64>,
    /// Most requests in one batch.
    pub max_batch_size: Option<i64>,
    /// `none`, `api_key`, `oauth2` or `mTLS`.
    pub auth_type: String,
    /// Where the credential is: `env:NAME` or `file:PATH`, and never the credential itself.
    pub credential_ref: Option<String>,
    /// Languages that the model knows.
    pub supported_languages: Vec<String>,
    /// What the model reads.
    pub supported_content: Vec<String>,
    /// When it was created.
    pub created_at: String,
    /// When it changed last.
    pub updated_at: String,
}

/// Names an LLM service of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct OneLlmService {
    /// Its id.
    pub llm_service_id: String,
}
