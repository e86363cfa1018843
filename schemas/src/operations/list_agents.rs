//! `list-agents`: the agents of a workspace.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::surface::{OF_WORKSPACE, PAGE, READS, SESSIONS, SINCE};
use super::workspace_agents::WorkspaceAgent;
use crate::topic::Class;

/// Which page of the agents of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WhichAgents {
    /// Most entries of the page: 1 to 200; left out: 50.
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before; left out: the first page.
    pub cursor: Option<String>,
}

/// A page of agents.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct WorkspaceAgents {
    /// The agents, oldest first.
    pub items: Vec<WorkspaceAgent>,
    /// The `cursor` of the next page; `null`: this is the last one.
    pub next_cursor: Option<String>,
}

/// The operation.
pub struct ListAgents;

impl Operation for ListAgents {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "list-agents",
        summary: "Lists the agents of a workspace, oldest first.",
        capability: READS,
        method: "GET",
        path: "/api/v1/workspaces/{workspace}/agents",
        status: 200,
        stream: "",
        id_key: OF_WORKSPACE,
        headers: &[],
        query: PAGE,
        class: Class::Request,
        effect: Effect::Read,
        asks_models: false,
        since: SINCE,
    };
    type Request = WhichAgents;
    type Reply = WorkspaceAgents;
    type Chunk = Empty;
    type Error = Failure;
}
