//! `delete-agent`: deletes an agent of a workspace.

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::get_agent::OneAgent;
use super::records::Empty;
use super::surface::{OF_WORKSPACE, SESSIONS, SINCE, WRITES};
use crate::topic::Class;

/// The operation.
pub struct DeleteAgent;

impl Operation for DeleteAgent {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "delete-agent",
        summary: "Deletes an agent of a workspace.",
        capability: WRITES,
        method: "DELETE",
        path: "/api/v1/workspaces/{workspace}/agents/{agent_id}",
        status: 204,
        stream: "",
        id_key: OF_WORKSPACE,
        headers: &[],
        query: &[],
        class: Class::Request,
        effect: Effect::Confirm,
        asks_models: false,
        since: SINCE,
    };
    type Request = OneAgent;
    type Reply = Empty;
    type Chunk = Empty;
    type Error = Failure;
}
