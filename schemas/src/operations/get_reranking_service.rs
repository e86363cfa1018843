//! `get-reranking-service`: one reranking service of a workspace.

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::reranking_services::{OneRerankingService, RerankingService};
use super::surface::{OF_WORKSPACE, READS, SESSIONS, SINCE};
use crate::topic::Class;

/// The operation.
pub struct GetRerankingService;

impl Operation for GetRerankingService {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "get-reranking-service",
        summary: "Shows a reranking service of a workspace.",
        capability: READS,
        method: "GET",
        path: "/api/v1/workspaces/{workspace}/reranking-services/{reranking_service_id}",
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
    type Request = OneRerankingService;
    type Reply = RerankingService;
    type Chunk = Empty;
    type Error = Failure;
}
