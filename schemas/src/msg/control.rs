//! Config, flow and collection services. Field names, order and defaults are the wire contract.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::data::Reembedding;
use super::lenient::{is_zero, nullable, string_map};
use super::message;
use crate::error::Error;

/// Names one row of a workspace's configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ConfigKey {
    #[serde(deserialize_with = "nullable")]
    /// Type of the row, such as `prompt`, `tool` or `flow`.
    pub r#type: String,
    #[serde(deserialize_with = "nullable")]
    /// Name of the row within its type.
    pub key: String,
}

message!(ConfigKey);

/// One row of configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ConfigValue {
    #[serde(deserialize_with = "nullable")]
    /// Type of the row, such as `prompt`, `tool` or `flow`.
    pub r#type: String,
    #[serde(deserialize_with = "nullable")]
    /// Name of the row within its type.
    pub key: String,
    #[serde(deserialize_with = "nullable")]
    /// Content, JSON text as a rule. Empty in `getkeys-all-ws` and in a change notice.
    pub value: String,
    #[serde(deserialize_with = "nullable")]
    /// The workspace.
    pub workspace: String,
}

message!(ConfigValue);

/// A question to the config service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ConfigRequest {
    #[serde(deserialize_with = "nullable")]
    /// `get`, `list`, `getvalues`, `put`, `delete` or `config`; inside the system also `getvalues-all-ws` and
    /// `getkeys-all-ws`.
    pub operation: String,
    #[serde(deserialize_with = "nullable")]
    /// The workspace.
    pub workspace: String,
    #[serde(deserialize_with = "nullable")]
    /// `get` and `delete`: which rows.
    pub keys: Vec<ConfigKey>,
    #[serde(deserialize_with = "nullable")]
    /// `list`, `getvalues` and those for all workspaces: which type.
    pub r#type: String,
    #[serde(deserialize_with = "nullable")]
    /// `put`: the rows to write. Their `workspace` is not looked at.
    pub values: Vec<ConfigValue>,
    /// `list`, `config`, `getvalues` and those for all workspaces: most entries of a page, at most 10,000. 0: all, or an error where one answer does not hold
    /// them; with `after` 1,000. Ours.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    pub limit: i64,
    /// The same: only what follows the page whose `next` said this. Ours.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub after: String,
}

message!(ConfigRequest);

/// What the config service answers. What an operation does not answer is empty.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ConfigResponse {
    #[serde(deserialize_with = "nullable")]
    /// Number of the configuration; every change raises it.
    pub version: i64,
    #[serde(deserialize_with = "nullable")]
    /// `get`: the rows in the order asked for, with no `value` where there is none. `getvalues`: all rows of the
    /// type.
    pub values: Vec<ConfigValue>,
    #[serde(deserialize_with = "nullable")]
    /// `list`: the names of the type's rows.
    pub directory: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// `config`: every row of the workspace, content by name by type.
    pub config: BTreeMap<String, BTreeMap<String, String>>,
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    /// A listing: where the next page begins, for `after`; empty if there is none. Ours.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub next: String,
}

message!(ConfigResponse);

/// Workspaces that came or went with a change of configuration.
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

/// Notice on `notify:tg:config` that configuration has changed. It carries no values: who needs them reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ConfigPush {
    #[serde(deserialize_with = "nullable")]
    /// Number of the configuration; every change raises it.
    pub version: i64,
    #[serde(deserialize_with = "nullable")]
    /// Workspaces with a change, by type.
    pub changes: BTreeMap<String, Vec<String>>,
    /// Workspaces that came or went; `None`: none.
    pub workspace_changes: Option<WorkspaceChanges>,
    /// Keys that changed (native notices only; no values). Empty means: re-read the changed types.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<ConfigValue>,
}

message!(ConfigPush);

/// A question to the flow service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct FlowRequest {
    #[serde(deserialize_with = "nullable")]
    /// `list-blueprints`, `get-blueprint`, `put-blueprint`, `delete-blueprint`, `list-flows`, `get-flow`,
    /// `start-flow`, `stop-flow`, or one of ours on flows, dead letters and the state of the system.
    pub operation: String,
    #[serde(deserialize_with = "nullable")]
    /// Name of the blueprint, unique in its workspace.
    pub blueprint_name: String,
    #[serde(deserialize_with = "nullable")]
    /// The blueprint, as JSON text.
    pub blueprint_definition: String,
    #[serde(deserialize_with = "nullable")]
    /// `start-flow`: what the flow is for, in the words of who starts it.
    pub description: String,
    #[serde(deserialize_with = "nullable")]
    /// Id of the flow, unique in its workspace.
    pub flow_id: String,
    #[serde(deserialize_with = "string_map")]
    /// `start-flow`: values of the blueprint's parameters by name. One that is left out has its default; one without
    /// a default is required. Ours read options of other operations here, too.
    pub parameters: BTreeMap<String, String>,
    /// `list-blueprints`, `list-flows`, `list-put-aside`: most entries of a page, at most 10,000. 0: all, or an error where one
    /// answer does not hold them; with `after` 1,000. Ours.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    pub limit: i64,
    /// The same: only what follows the page whose `next` said this. Ours.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub after: String,
}

message!(FlowRequest);

/// What the flow service answers. What an operation does not answer is empty.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct FlowResponse {
    #[serde(deserialize_with = "nullable")]
    /// `list-blueprints`: the names.
    pub blueprint_names: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// `list-flows`: the ids.
    pub flow_ids: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// The blueprint, as JSON text.
    pub blueprint_definition: String,
    #[serde(deserialize_with = "nullable")]
    /// `get-flow`: the flow's record, as a JSON object in text. Operations of ours answer here, too.
    pub flow: String,
    #[serde(deserialize_with = "nullable")]
    /// `get-flow`: what the flow is for.
    pub description: String,
    #[serde(deserialize_with = "string_map")]
    /// `get-flow`: the values that the flow was started with, by name.
    pub parameters: BTreeMap<String, String>,
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    /// A listing: where the next page begins, for `after`; empty if there is none. Ours.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub next: String,
}

message!(FlowResponse);

/// What is known of a collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct CollectionMetadata {
    #[serde(deserialize_with = "nullable")]
    /// Id, unique in its workspace.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// Name for people; the id where none was given.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// What is in it; may be empty.
    pub description: String,
    #[serde(deserialize_with = "nullable")]
    /// Tags, in the order given.
    pub tags: Vec<String>,
}

message!(CollectionMetadata);

/// A question about collections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct CollectionManagementRequest {
    #[serde(deserialize_with = "nullable")]
    /// `list-collections`, `update-collection` or `delete-collection`; ours also `reembed-collection`, `show-reembedding`
    /// and `abandon-reembedding`.
    pub operation: String,
    #[serde(deserialize_with = "nullable")]
    /// Id of the collection to write or delete.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// When it was made, as text in RFC 3339.
    pub timestamp: String,
    #[serde(deserialize_with = "nullable")]
    /// `update-collection`: name for people; empty: the id.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// `update-collection`: what is in it. Empty takes the old one away.
    pub description: String,
    #[serde(deserialize_with = "nullable")]
    /// `update-collection`: all tags. None take the old ones away.
    pub tags: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// `list-collections`: only those with one of these tags; none: all.
    pub tag_filter: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// `list-collections`: most collections of a page, at most 10,000. 0: all, or an error where one answer does not
    /// hold them; with `after` 1,000.
    pub limit: i64,
    /// The same: only what follows the page whose `next` said this. Ours.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub after: String,
    /// `reembed-collection`: the flow whose embeddings model makes the vectors. Ours.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub flow: String,
    /// The same: vectors whose text is not known go with the old model. Ours.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub leave_out: bool,
}

message!(CollectionManagementRequest);

/// What was found or written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct CollectionManagementResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// When it was made, as text in RFC 3339.
    pub timestamp: String,
    #[serde(deserialize_with = "nullable")]
    /// Those listed, or the one written.
    pub collections: Vec<CollectionMetadata>,
    /// A listing: where the next page begins, for `after`; empty if there is none. Ours.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub next: String,
    /// How far the vectors of a collection are made again. Ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reembedding: Option<Reembedding>,
}

message!(CollectionManagementResponse);
