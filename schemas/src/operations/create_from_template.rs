//! `create-from-template`: adds an agent that is like a template.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::surface::{OF_WORKSPACE, SESSIONS, SINCE, WRITES};
use super::workspace_agents::WorkspaceAgent;
use crate::topic::Class;

/// Names a template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct FromTemplate {
    /// Id of the template.
    #[serde(alias = "template_id")]
    pub template_id: String,
}

/// The operation.
pub struct CreateFromTemplate;

impl Operation for CreateFromTemplate {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "create-from-template",
        summary: "Adds an agent that is like a template to a workspace.",
        capability: WRITES,
        method: "POST",
        path: "/api/v1/workspaces/{workspace}/agents/from-template",
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
    type Request = FromTemplate;
    type Reply = WorkspaceAgent;
    type Chunk = Empty;
    type Error = Failure;
}
