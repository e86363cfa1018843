//! Config, flow and collection services. Field names, order and defaults are the wire contract.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::lenient::{nullable, string_map};
use super::message;
use crate::error::Error;

/// The `ConfigKey` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ConfigKey {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `type`.
    pub r#type: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `key`.
    pub key: String,
}

message!(ConfigKey);

/// The `ConfigValue` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ConfigValue {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `type`.
    pub r#type: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `key`.
    pub key: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `value`.
    pub value: String,
    #[serde(deserialize_with = "nullable")]
    /// The workspace.
    pub workspace: String,
}

message!(ConfigValue);

/// The `ConfigRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ConfigRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `operation`.
    pub operation: String,
    #[serde(deserialize_with = "nullable")]
    /// The workspace.
    pub workspace: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `keys`.
    pub keys: Vec<ConfigKey>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `type`.
    pub r#type: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `values`.
    pub values: Vec<ConfigValue>,
    /// Asks for one page: empty for the first, then what `next` of the page before says. Absent: the whole answer
    /// in one part, or an error where that is too large. Native only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
}

message!(ConfigRequest);

/// The `ConfigResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ConfigResponse {
    #[serde(deserialize_with = "nullable")]
    /// Number of the configuration; every change raises it.
    pub version: i64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `values`.
    pub values: Vec<ConfigValue>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `directory`.
    pub directory: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `config`.
    pub config: BTreeMap<String, BTreeMap<String, String>>,
    /// Wire field `error`.
    pub error: Option<Error>,
    /// Which page is next; absent on the last one, and where no page was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

message!(ConfigResponse);

/// The `WorkspaceChanges` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct WorkspaceChanges {
    #[serde(deserialize_with = "nullable")]
    /// Workspaces that came into being.
    pub created: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Workspaces that are gone.
    pub deleted: Vec<String>,
}

message!(WorkspaceChanges);

/// The `ConfigPush` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ConfigPush {
    #[serde(deserialize_with = "nullable")]
    /// Number of the configuration; every change raises it.
    pub version: i64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `changes`.
    pub changes: BTreeMap<String, Vec<String>>,
    /// Wire field `workspace_changes`.
    pub workspace_changes: Option<WorkspaceChanges>,
    /// Keys that changed (native notices only; no values). Empty means: re-read the changed types.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<ConfigValue>,
}

message!(ConfigPush);

/// The `FlowRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct FlowRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `operation`.
    pub operation: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `blueprint_name`.
    pub blueprint_name: String,
    #[serde(deserialize_with = "nullable")]
    /// The blueprint, as JSON text.
    pub blueprint_definition: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `description`.
    pub description: String,
    #[serde(deserialize_with = "nullable")]
    /// Id of the flow, unique in its workspace.
    pub flow_id: String,
    #[serde(deserialize_with = "string_map")]
    /// Wire field `parameters`.
    pub parameters: BTreeMap<String, String>,
}

message!(FlowRequest);

/// The `FlowResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct FlowResponse {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `blueprint_names`.
    pub blueprint_names: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `flow_ids`.
    pub flow_ids: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// The blueprint, as JSON text.
    pub blueprint_definition: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `flow`.
    pub flow: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `description`.
    pub description: String,
    #[serde(deserialize_with = "string_map")]
    /// Wire field `parameters`.
    pub parameters: BTreeMap<String, String>,
    /// Wire field `error`.
    pub error: Option<Error>,
}

message!(FlowResponse);

/// The `CollectionMetadata` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct CollectionMetadata {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `collection`.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `name`.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `description`.
    pub description: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `tags`.
    pub tags: Vec<String>,
}

message!(CollectionMetadata);

/// The `CollectionManagementRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct CollectionManagementRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `operation`.
    pub operation: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `collection`.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// When it was made, as text in RFC 3339.
    pub timestamp: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `name`.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `description`.
    pub description: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `tags`.
    pub tags: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `tag_filter`.
    pub tag_filter: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `limit`.
    pub limit: i64,
}

message!(CollectionManagementRequest);

/// The `CollectionManagementResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct CollectionManagementResponse {
    /// Wire field `error`.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// When it was made, as text in RFC 3339.
    pub timestamp: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `collections`.
    pub collections: Vec<CollectionMetadata>,
}

message!(CollectionManagementResponse);
