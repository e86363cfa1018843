//! `delete-reranking-service`: deletes a reranking service of a workspace.

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::reranking_services::OneRerankingService;
use super::surface::{CONFIG_WRITE, OF_WORKSPACE, SESSIONS, SINCE};
use crate::topic::Class;

/// The operation.
pub struct DeleteRerankingService;

impl Operation for DeleteRerankingService {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "delete-reranking-service",
        summary: "Deletes a reranking service of a workspace that no agent names.",
        capability: CONFIG_WRITE,
        method: "DELETE",
        path: "/api/v1/workspaces/{workspace}/reranking-services/{reranking_service_id}",
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
    type Request = OneRerankingService;
    type Reply = Empty;
    type Chunk = Empty;
    type Error = Failure;
}
