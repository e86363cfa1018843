//! `list-templates`: the templates of agents.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::surface::{OF_WORKSPACE, SESSIONS, SINCE, WRITES};
use super::workspace_agents::AgentTemplate;
use crate::topic::Class;

/// All templates, the same in every workspace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct AgentTemplates {
    /// The templates.
    pub items: Vec<AgentTemplate>,
    /// Always `null`: there is one page.
    pub next_cursor: Option<String>,
}

/// The operation.
pub struct ListTemplates;

impl Operation for ListTemplates {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "list-templates",
        summary: "Lists the templates of agents.",
        capability: WRITES,
        method: "GET",
        path: "/api/v1/workspaces/{workspace}/agent-templates",
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
    type Request = Empty;
    type Reply = AgentTemplates;
    type Chunk = Empty;
    type Error = Failure;
}
