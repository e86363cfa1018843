//! Reranking services of workspaces: where a model puts passages in order, and by which credential.

use serde::{Deserialize, Serialize};

/// A reranking service of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct RerankingService {
    /// Its workspace.
    pub workspace_id: String,
    /// Its id.
    pub reranking_service_id: String,
    /// Its name, 1 to 200 characters.
    pub name: String,
    /// How it is spoken to: `cohere`, `jina` or `tei`.
    pub provider: String,
    /// The name of the model there.
    pub model_name: String,
    /// Address of the server.
    pub endpoint_base_url: String,
    /// Path that is put behind the address.
    pub endpoint_path: Option<String>,
    /// Where the credential is: `env:NAME` or `file:PATH`, and never the credential itself.
    pub credential_ref: Option<String>,
    /// When it was created.
    pub created_at: String,
    /// When it changed last.
    pub updated_at: String,
}

/// Names a reranking service of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct OneRerankingService {
    /// Its id.
    pub reranking_service_id: String,
}
