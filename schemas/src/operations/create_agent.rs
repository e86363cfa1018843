//! `create-agent`: adds an agent to a workspace.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::surface::{OF_WORKSPACE, SESSIONS, SINCE, WRITES};
use super::workspace_agents::WorkspaceAgent;
use crate::topic::Class;

/// What the new agent is like.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct NewAgent {
    /// Its id, a UUID; left out: a new one.
    #[serde(alias = "agent_id")]
    pub agent_id: Option<String>,
    /// Its name, 1 to 200 characters.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The system prompt.
    #[serde(alias = "system_prompt")]
    pub system_prompt: Option<String>,
    /// What is put before the first message of a conversation.
    #[serde(alias = "user_prompt")]
    pub user_prompt: Option<String>,
    /// The LLM service that answers.
    #[serde(alias = "llm_service_id")]
    pub llm_service_id: Option<String>,
    /// Collections that it reads.
    #[serde(alias = "knowledge_base_ids")]
    pub knowledge_base_ids: Vec<String>,
    /// Whether it reads them before each answer.
    #[serde(alias = "rag_enabled")]
    pub rag_enabled: bool,
    /// Most passages that are read.
    #[serde(alias = "rag_max_results")]
    pub rag_max_results: Option<i64>,
    /// Passages below this score are left out.
    #[serde(alias = "rag_min_score")]
    pub rag_min_score: Option<f64>,
    /// Whether passages are put in another order before the best are kept.
    #[serde(alias = "rerank_enabled")]
    pub rerank_enabled: bool,
    /// The reranking service.
    #[serde(alias = "reranking_service_id")]
    pub reranking_service_id: Option<String>,
    /// Passages that are kept then.
    #[serde(alias = "rerank_max_results")]
    pub rerank_max_results: Option<i64>,
}

/// The operation.
pub struct CreateAgent;

impl Operation for CreateAgent {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "create-agent",
        summary: "Adds an agent to a workspace.",
        capability: WRITES,
        method: "POST",
        path: "/api/v1/workspaces/{workspace}/agents",
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
    type Request = NewAgent;
    type Reply = WorkspaceAgent;
    type Chunk = Empty;
    type Error = Failure;
}
