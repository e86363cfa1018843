//! `update-reranking-service`: changes a reranking service of a workspace.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::reranking_services::RerankingService;
use super::surface::{CONFIG_WRITE, OF_WORKSPACE, SESSIONS, SINCE};
use super::workspace_agents::{present, said};
use crate::topic::Class;

/// What changes; a field that is left out stays, and `null` clears one that may be empty. Any other field is refused.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct RerankingServiceChange {
    /// Id of the service.
    #[serde(rename = "reranking_service_id")]
    pub reranking_service_id: String,
    /// Its name, 1 to 200 characters.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How it is spoken to: `cohere`, `jina` or `tei`.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The name of the model there.
    #[serde(
        alias = "model_name",
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub model_name: Option<String>,
    /// Address of the server.
    #[serde(
        alias = "endpoint_base_url",
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub endpoint_base_url: Option<String>,
    /// Path that is put behind the address.
    #[serde(
        alias = "endpoint_path",
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    pub endpoint_path: Option<Option<String>>,
    /// Where the credential is: `env:NAME` or `file:PATH`, and never the credential itself.
    #[serde(
        alias = "credential_ref",
        deserialize_with = "said",
        skip_serializing_if = "Option::is_none"
    )]
    pub credential_ref: Option<Option<String>>,
}

/// The operation.
pub struct UpdateRerankingService;

impl Operation for UpdateRerankingService {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "update-reranking-service",
        summary: "Changes a reranking service of a workspace.",
        capability: CONFIG_WRITE,
        method: "PATCH",
        path: "/api/v1/workspaces/{workspace}/reranking-services/{reranking_service_id}",
        status: 200,
        stream: "",
        id_key: OF_WORKSPACE,
        headers: &[],
        query: &[],
        class: Class::Request,
        effect: Effect::Write,
        asks_models: false,
        since: SINCE,
    };
    type Request = RerankingServiceChange;
    type Reply = RerankingService;
    type Chunk = Empty;
    type Error = Failure;
}
