//! `create-reranking-service`: adds a reranking service to a workspace.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::reranking_services::RerankingService;
use super::surface::{CONFIG_WRITE, OF_WORKSPACE, SESSIONS, SINCE};
use crate::topic::Class;

/// What the new reranking service is like.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct NewRerankingService {
    /// Its id, a UUID; left out: a new one.
    #[serde(alias = "reranking_service_id")]
    pub reranking_service_id: Option<String>,
    /// Its name, 1 to 200 characters.
    pub name: String,
    /// How it is spoken to: `cohere`, `jina` or `tei`.
    pub provider: String,
    /// The name of the model there.
    #[serde(alias = "model_name")]
    pub model_name: String,
    /// Address of the server.
    #[serde(alias = "endpoint_base_url")]
    pub endpoint_base_url: String,
    /// Path that is put behind the address.
    #[serde(alias = "endpoint_path")]
    pub endpoint_path: Option<String>,
    /// Where the credential is: `env:NAME` or `file:PATH`, and never the credential itself.
    #[serde(alias = "credential_ref")]
    pub credential_ref: Option<String>,
}

/// The operation.
pub struct CreateRerankingService;

impl Operation for CreateRerankingService {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "create-reranking-service",
        summary: "Adds a reranking service to a workspace.",
        capability: CONFIG_WRITE,
        method: "POST",
        path: "/api/v1/workspaces/{workspace}/reranking-services",
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
    type Request = NewRerankingService;
    type Reply = RerankingService;
    type Chunk = Empty;
    type Error = Failure;
}
