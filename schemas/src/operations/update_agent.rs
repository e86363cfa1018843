//! `update-agent`: changes an agent of a workspace.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::surface::{OF_WORKSPACE, SESSIONS, SINCE, WRITES};
use super::workspace_agents::{WorkspaceAgent, present, said};
use crate::topic::Class;

/// What changes; a field that is left out stays, and `null` clears one that may be empty. Any other field is refused.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentChange {
    /// Id of the agent.
    #[serde(rename = "agent_id")]
    pub agent_id: String,
    /// Its name.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is for.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub description: Option<Option<String>>,
    /// The system prompt.
    #[serde(
        alias = "system_prompt",
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    pub system_prompt: Option<Option<String>>,
    /// What is put before the first message of a conversation.
    #[serde(
        alias = "user_prompt",
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    pub user_prompt: Option<Option<String>>,
    /// The LLM service that answers.
    #[serde(
        alias = "llm_service_id",
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    pub llm_service_id: Option<Option<String>>,
    /// Collections that it reads.
    #[serde(
        alias = "knowledge_base_ids",
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub knowledge_base_ids: Option<Vec<String>>,
    /// Whether it reads them before each answer.
    #[serde(
        alias = "rag_enabled",
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub rag_enabled: Option<bool>,
    /// Most passages that are read.
    #[serde(
        alias = "rag_max_results",
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    pub rag_max_results: Option<Option<i64>>,
    /// Passages below this score are left out.
    #[serde(
        alias = "rag_min_score",
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    pub rag_min_score: Option<Option<f64>>,
    /// Whether passages are put in another order before the best are kept.
    #[serde(
        alias = "rerank_enabled",
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub rerank_enabled: Option<bool>,
    /// The reranking service.
    #[serde(
        alias = "reranking_service_id",
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    pub reranking_service_id: Option<Option<String>>,
    /// Passages that are kept then.
    #[serde(
        alias = "rerank_max_results",
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    pub rerank_max_results: Option<Option<i64>>,
}

/// The operation.
pub struct UpdateAgent;

impl Operation for UpdateAgent {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "update-agent",
        summary: "Changes an agent of a workspace.",
        capability: WRITES,
        method: "PATCH",
        path: "/api/v1/workspaces/{workspace}/agents/{agent_id}",
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
    type Request = AgentChange;
    type Reply = WorkspaceAgent;
    type Chunk = Empty;
    type Error = Failure;
}
