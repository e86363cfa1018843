//! `list-reranking-services`: the reranking services of a workspace.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::reranking_services::RerankingService;
use super::surface::{OF_WORKSPACE, PAGE, READS, SESSIONS, SINCE};
use crate::topic::Class;

/// Which page of the reranking services of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WhichRerankingServices {
    /// Most entries of the page: 1 to 200; left out: 50.
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before; left out: the first page.
    pub cursor: Option<String>,
}

/// A page of reranking services.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct RerankingServices {
    /// The services, oldest first.
    pub items: Vec<RerankingService>,
    /// The `cursor` of the next page; `null`: this is the last one.
    pub next_cursor: Option<String>,
}

/// The operation.
pub struct ListRerankingServices;

impl Operation for ListRerankingServices {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "list-reranking-services",
        summary: "Lists the reranking services of a workspace, oldest first.",
        capability: READS,
        method: "GET",
        path: "/api/v1/workspaces/{workspace}/reranking-services",
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
    type Request = WhichRerankingServices;
    type Reply = RerankingServices;
    type Chunk = Empty;
    type Error = Failure;
}
