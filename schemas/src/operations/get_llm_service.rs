//! `get-llm-service`: one LLM service of a workspace.

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::llm_services::{LlmService, OneLlmService};
use super::records::Empty;
use super::surface::{OF_WORKSPACE, READS, SESSIONS, SINCE};
use crate::topic::Class;

/// The operation.
pub struct GetLlmService;

impl Operation for GetLlmService {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "get-llm-service",
        summary: "Shows an LLM service of a workspace.",
        capability: READS,
        method: "GET",
        path: "/api/v1/workspaces/{workspace}/llm-services/{llm_service_id}",
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
    type Request = OneLlmService;
    type Reply = LlmService;
    type Chunk = Empty;
    type Error = Failure;
}
