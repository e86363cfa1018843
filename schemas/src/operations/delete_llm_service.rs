//! `delete-llm-service`: deletes an LLM service of a workspace.

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::llm_services::OneLlmService;
use super::records::Empty;
use super::surface::{CONFIG_WRITE, OF_WORKSPACE, SESSIONS, SINCE};
use crate::topic::Class;

/// The operation.
pub struct DeleteLlmService;

impl Operation for DeleteLlmService {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "delete-llm-service",
        summary: "Deletes an LLM service of a workspace that no agent names.",
        capability: CONFIG_WRITE,
        method: "DELETE",
        path: "/api/v1/workspaces/{workspace}/llm-services/{llm_service_id}",
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
    type Request = OneLlmService;
    type Reply = Empty;
    type Chunk = Empty;
    type Error = Failure;
}
