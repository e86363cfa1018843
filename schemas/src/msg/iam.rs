//! Identity and access. Field names, order and defaults are the wire contract.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;
use crate::error::Error;

/// The `UserInput` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UserInput {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `username`.
    pub username: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `name`.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `email`.
    pub email: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `password`.
    pub password: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `roles`.
    pub roles: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `enabled`.
    pub enabled: bool,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `must_change_password`.
    pub must_change_password: bool,
}

impl Default for UserInput {
    fn default() -> Self {
        Self {
            username: Default::default(),
            name: Default::default(),
            email: Default::default(),
            password: Default::default(),
            roles: Default::default(),
            enabled: true,
            must_change_password: Default::default(),
        }
    }
}

message!(UserInput);

/// The `UserRecord` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UserRecord {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `id`.
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `default_workspace`.
    pub default_workspace: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `username`.
    pub username: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `name`.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `email`.
    pub email: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `roles`.
    pub roles: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `enabled`.
    pub enabled: bool,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `must_change_password`.
    pub must_change_password: bool,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `created`.
    pub created: String,
}

impl Default for UserRecord {
    fn default() -> Self {
        Self {
            id: Default::default(),
            default_workspace: Default::default(),
            username: Default::default(),
            name: Default::default(),
            email: Default::default(),
            roles: Default::default(),
            enabled: true,
            must_change_password: Default::default(),
            created: Default::default(),
        }
    }
}

message!(UserRecord);

/// The `WorkspaceInput` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkspaceInput {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `id`.
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `name`.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `enabled`.
    pub enabled: bool,
}

impl Default for WorkspaceInput {
    fn default() -> Self {
        Self {
            id: Default::default(),
            name: Default::default(),
            enabled: true,
        }
    }
}

message!(WorkspaceInput);

/// The `WorkspaceRecord` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkspaceRecord {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `id`.
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `name`.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `enabled`.
    pub enabled: bool,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `created`.
    pub created: String,
}

impl Default for WorkspaceRecord {
    fn default() -> Self {
        Self {
            id: Default::default(),
            name: Default::default(),
            enabled: true,
            created: Default::default(),
        }
    }
}

message!(WorkspaceRecord);

/// The `ApiKeyInput` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ApiKeyInput {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `user_id`.
    pub user_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `name`.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `expires`.
    pub expires: String,
}

message!(ApiKeyInput);

/// The `ApiKeyRecord` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ApiKeyRecord {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `id`.
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `user_id`.
    pub user_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `name`.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `prefix`.
    pub prefix: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `expires`.
    pub expires: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `created`.
    pub created: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `last_used`.
    pub last_used: String,
}

message!(ApiKeyRecord);

/// The `GroupInput` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupInput {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `name`.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `description`.
    pub description: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `enabled`.
    pub enabled: bool,
}

impl Default for GroupInput {
    fn default() -> Self {
        Self {
            name: Default::default(),
            description: Default::default(),
            enabled: true,
        }
    }
}

message!(GroupInput);

/// The `GrantInput` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct GrantInput {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `capability`.
    pub capability: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `workspace`.
    pub workspace: String,
}

message!(GrantInput);

/// The `IamRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct IamRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `operation`.
    pub operation: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `workspace`.
    pub workspace: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `actor`.
    pub actor: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `user_id`.
    pub user_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `username`.
    pub username: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `key_id`.
    pub key_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `api_key`.
    pub api_key: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `password`.
    pub password: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `new_password`.
    pub new_password: String,
    /// Wire field `user`.
    pub user: Option<UserInput>,
    /// Wire field `workspace_record`.
    pub workspace_record: Option<WorkspaceInput>,
    /// Wire field `key`.
    pub key: Option<ApiKeyInput>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `group_id`.
    pub group_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `member_type`.
    pub member_type: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `member_id`.
    pub member_id: String,
    /// Wire field `group`.
    pub group: Option<GroupInput>,
    /// Wire field `grant`.
    pub grant: Option<GrantInput>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `request_id`.
    pub request_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `client_ip`.
    pub client_ip: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `user_context_json`.
    pub user_context_json: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `capability`.
    pub capability: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `resource_json`.
    pub resource_json: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `parameters_json`.
    pub parameters_json: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `authorise_checks`.
    pub authorise_checks: String,
}

message!(IamRequest);

/// The `IamResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct IamResponse {
    /// Wire field `user`.
    pub user: Option<UserRecord>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `users`.
    pub users: Vec<UserRecord>,
    /// Wire field `workspace`.
    pub workspace: Option<WorkspaceRecord>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `workspaces`.
    pub workspaces: Vec<WorkspaceRecord>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `api_key_plaintext`.
    pub api_key_plaintext: String,
    /// Wire field `api_key`.
    pub api_key: Option<ApiKeyRecord>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `api_keys`.
    pub api_keys: Vec<ApiKeyRecord>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `jwt`.
    pub jwt: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `jwt_expires`.
    pub jwt_expires: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `signing_key_public`.
    pub signing_key_public: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `resolved_user_id`.
    pub resolved_user_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `resolved_default_workspace`.
    pub resolved_default_workspace: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `resolved_roles`.
    pub resolved_roles: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `temporary_password`.
    pub temporary_password: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `bootstrap_admin_user_id`.
    pub bootstrap_admin_user_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `bootstrap_admin_api_key`.
    pub bootstrap_admin_api_key: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `bootstrap_available`.
    pub bootstrap_available: bool,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `decision_allow`.
    pub decision_allow: bool,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `decision_ttl_seconds`.
    pub decision_ttl_seconds: i64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `decisions_json`.
    pub decisions_json: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `group_json`.
    pub group_json: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `groups_json`.
    pub groups_json: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `members_json`.
    pub members_json: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `grants_json`.
    pub grants_json: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `effective_permissions_json`.
    pub effective_permissions_json: String,
    /// Wire field `error`.
    pub error: Option<Error>,
}

message!(IamResponse);
