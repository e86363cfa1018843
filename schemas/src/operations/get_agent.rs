//! `get-agent`: one agent of a workspace.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::surface::{OF_WORKSPACE, READS, SESSIONS, SINCE};
use super::workspace_agents::WorkspaceAgent;
use crate::topic::Class;

/// Names an agent of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct OneAgent {
    /// Id of the agent.
    pub agent_id: String,
}

/// The operation.
pub struct GetAgent;

impl Operation for GetAgent {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "get-agent",
        summary: "Shows an agent of a workspace.",
        capability: READS,
        method: "GET",
        path: "/api/v1/workspaces/{workspace}/agents/{agent_id}",
        status: 200,
        stream: "",
        id_key: OF_WORKSPACE,
        headers: &[],
        query: &[],
        class: Class::Request,
        effect: Effect::Read,
        asks_models: false,
        since: SINCE,
    };
    type Request = OneAgent;
    type Reply = WorkspaceAgent;
    type Chunk = Empty;
    type Error = Failure;
}
