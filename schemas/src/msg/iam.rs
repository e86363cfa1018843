//! Identity and access. Field names, order and defaults are the wire contract.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lenient::{is_zero, nullable};
use super::message;
use crate::error::Error;

/// Fields that are never shown, also where somebody prints a whole message to find a fault.
const SECRET: [&str; 8] = [
    "password",
    "new_password",
    "api_key",
    "api_key_plaintext",
    "jwt",
    "temporary_password",
    "bootstrap_admin_api_key",
    "user_context_json",
];

/// A message without what is secret in it, however deep.
fn starred(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                match inner {
                    Value::String(text) if SECRET.contains(&name.as_str()) => {
                        if !text.is_empty() {
                            "***".clone_into(text);
                        }
                    }
                    inner => starred(inner),
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(starred),
        _ => {}
    }
}

/// Prints a message with stars for what is secret in it.
macro_rules! unseen {
    ($name:ident) => {
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut all = serde_json::to_value(self).map_err(|_| fmt::Error)?;
                starred(&mut all);
                write!(f, "{} {all}", stringify!($name))
            }
        }
    };
}

/// What a user is to be, in a request.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UserInput {
    #[serde(deserialize_with = "nullable")]
    /// Name to log in with, unique over all workspaces; cannot be changed.
    pub username: String,
    #[serde(deserialize_with = "nullable")]
    /// Name for people; empty: the `username`, in an update the old one.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// Address; empty: none, in an update the old one.
    pub email: String,
    #[serde(deserialize_with = "nullable")]
    /// `create-user`: the password, at most 1,024 bytes; empty: none, so that only API keys let the user in. Never
    /// logged, told or changed by `update-user`.
    pub password: String,
    #[serde(deserialize_with = "nullable")]
    /// `reader`, `writer` or `admin`; none: in an update the old ones.
    pub roles: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Whether the user may come in; true if left out, in an update what it was.
    pub enabled: bool,
    #[serde(deserialize_with = "nullable")]
    /// Whether the password is to be changed. Kept and reported; a login is let in all the same. Left out in an update:
    /// what it was.
    pub must_change_password: bool,
    /// `update-user`: names of the flags above that were said, so that one that was left out stays. Ours.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<String>,
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
            told: Default::default(),
        }
    }
}

unseen!(UserInput);
message!(UserInput);

/// A user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UserRecord {
    #[serde(deserialize_with = "nullable")]
    /// Id, a UUID as a rule.
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    /// Where requests go that name no workspace; the workspace that the user belongs to.
    pub default_workspace: String,
    #[serde(deserialize_with = "nullable")]
    /// Name to log in with, unique over all workspaces.
    pub username: String,
    #[serde(deserialize_with = "nullable")]
    /// Name for people.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// Address; empty: none.
    pub email: String,
    #[serde(deserialize_with = "nullable")]
    /// `reader`, `writer` or `admin`.
    pub roles: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Whether the user may come in.
    pub enabled: bool,
    #[serde(deserialize_with = "nullable")]
    /// Whether the password is to be changed: it was set by somebody else. A login is let in all the same.
    pub must_change_password: bool,
    #[serde(deserialize_with = "nullable")]
    /// When it was made, as text in RFC 3339.
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

/// What a workspace is to be, in a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkspaceInput {
    #[serde(deserialize_with = "nullable")]
    /// Id: letters, digits, `.`, `_` and `-`; begins with a letter or a digit, has no `--`.
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    /// Name for people; empty: the id, in an update the old one.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// Whether it serves; true if left out. An update only switches off: `enable-workspace` switches on. Switched
    /// off, nothing of it is lost.
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

/// A workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkspaceRecord {
    #[serde(deserialize_with = "nullable")]
    /// Id.
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    /// Name for people.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// Whether it serves.
    pub enabled: bool,
    #[serde(deserialize_with = "nullable")]
    /// When it was made, as text in RFC 3339.
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

/// What a key is to be, in a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ApiKeyInput {
    #[serde(deserialize_with = "nullable")]
    /// User whom the key speaks for.
    pub user_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Name for people; required.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// When it ends: RFC 3339, or a date or a time without offset, which are UTC. Empty: never.
    pub expires: String,
    /// The only capabilities that it is to have of the user's; empty: all of them. Ours.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
}

message!(ApiKeyInput);

/// What is known of a key. The key itself is returned once, when it is made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ApiKeyRecord {
    #[serde(deserialize_with = "nullable")]
    /// Id, by which it is revoked.
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    /// User whom the key speaks for.
    pub user_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Name for people.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// The first seven characters of the key, to know it by.
    pub prefix: String,
    #[serde(deserialize_with = "nullable")]
    /// When it ends, as text in RFC 3339; empty: never.
    pub expires: String,
    #[serde(deserialize_with = "nullable")]
    /// When it was made, as text in RFC 3339.
    pub created: String,
    #[serde(deserialize_with = "nullable")]
    /// When it was last used. Always empty in ours: uses are not written down.
    pub last_used: String,
    /// The only capabilities that it has of the user's; empty: all of them. Ours.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
}

message!(ApiKeyRecord);

/// What a group is to be, in a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupInput {
    #[serde(deserialize_with = "nullable")]
    /// Name, unique; empty in an update: the old one.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// What it is for; empty in an update: the old one.
    pub description: String,
    #[serde(deserialize_with = "nullable")]
    /// Whether its grants count; true if left out, in an update what it was.
    pub enabled: bool,
    /// `update-group`: `enabled`, if that was said. Ours.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<String>,
}

impl Default for GroupInput {
    fn default() -> Self {
        Self {
            name: Default::default(),
            description: Default::default(),
            enabled: true,
            told: Default::default(),
        }
    }
}

message!(GroupInput);

/// What may be done where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct GrantInput {
    #[serde(deserialize_with = "nullable")]
    /// The capability, such as `triples:read`, or a role, which stands for all of its capabilities.
    pub capability: String,
    #[serde(deserialize_with = "nullable")]
    /// Where; empty: everywhere.
    pub workspace: String,
}

message!(GrantInput);

/// A question to the IAM service. Which fields count follows from the operation.
#[derive(Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct IamRequest {
    #[serde(deserialize_with = "nullable")]
    /// What to do: `whoami`, `create-user`, `list-api-keys`, `disable-workspace` and so on; inside the system also
    /// `resolve-api-key`, `authorise` and `authorise-many`.
    pub operation: String,
    #[serde(deserialize_with = "nullable")]
    /// Workspace of the user or key; in a listing only those of this one, empty: of all.
    pub workspace: String,
    #[serde(deserialize_with = "nullable")]
    /// Id of the user who asks, as the gateway knows it. What clients say of it is not passed on.
    pub actor: String,
    #[serde(deserialize_with = "nullable")]
    /// User that the operation is about.
    pub user_id: String,
    #[serde(deserialize_with = "nullable")]
    /// `login`, `mint-token`: name of the user.
    pub username: String,
    #[serde(deserialize_with = "nullable")]
    /// `revoke-api-key`: which.
    pub key_id: String,
    #[serde(deserialize_with = "nullable")]
    /// `resolve-api-key`: the key in clear text; `resolve-token`: the token. Never logged.
    pub api_key: String,
    #[serde(deserialize_with = "nullable")]
    /// `login`, `change-password`: the user's present password; in `bootstrap` the one-time code of a fresh system.
    /// Never logged.
    pub password: String,
    #[serde(deserialize_with = "nullable")]
    /// `change-password`: the new one, at most 1,024 bytes. Never logged.
    pub new_password: String,
    /// `create-user` and `update-user`: what the user is to be.
    pub user: Option<UserInput>,
    /// Operations on workspaces: which, and what it is to be.
    pub workspace_record: Option<WorkspaceInput>,
    /// `create-api-key`: what the key is to be; `list-api-keys` names its user in `user_id`.
    pub key: Option<ApiKeyInput>,
    #[serde(deserialize_with = "nullable")]
    /// Group that the operation is about.
    pub group_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Kind of the member: `user`, also if left out. Ours has no groups in groups.
    pub member_type: String,
    #[serde(deserialize_with = "nullable")]
    /// Member of a group: id of the user.
    pub member_id: String,
    /// What the group is to be.
    pub group: Option<GroupInput>,
    /// What is granted or taken back.
    pub grant: Option<GrantInput>,
    #[serde(deserialize_with = "nullable")]
    /// Id that the gateway gives each request, for the audit of a foreign IAM service.
    pub request_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Address of who asks. With `login` and `change-password` that of whoever is connected, whose guesses are counted;
    /// else the gateway tells it only of a program on its own machine, who may have the first key; empty: somebody else.
    pub client_ip: String,
    #[serde(deserialize_with = "nullable")]
    /// `mint-token`: what policies know of the user, as a JSON object in text of at most 4,096 bytes; a claim of the
    /// token.
    pub user_context_json: String,
    #[serde(deserialize_with = "nullable")]
    /// `authorise`: what is to be done, such as `triples:read`.
    pub capability: String,
    #[serde(deserialize_with = "nullable")]
    /// `authorise`: on what, as a JSON object in text with `workspace` and `flow`; neither: on the system.
    pub resource_json: String,
    #[serde(deserialize_with = "nullable")]
    /// `authorise`: what the operation is about, as a JSON object in text, maybe with `workspace`.
    pub parameters_json: String,
    #[serde(deserialize_with = "nullable")]
    /// `authorise-many`: a JSON list of `{capability, resource, parameters}` in text, at most 1,024.
    pub authorise_checks: String,
    /// `list-users`, `list-workspaces`, `list-my-workspaces`, `list-api-keys`, `list-groups`, `list-group-members`,
    /// `list-group-grants`, `list-user-grants`: most entries of a page, at most 10,000. 0: all, or an error where one answer
    /// does not hold them; with `after` 1,000. Ours.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    pub limit: i64,
    /// The same: only what follows the page whose `next` said this. Ours.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub after: String,
    /// What the caller came with, for the audit: `key:` and the key's id, or `token`. Ours.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub credential: String,
    /// Address of whoever is connected, for the audit only. Ours.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub address: String,
}

unseen!(IamRequest);
message!(IamRequest);

/// What the IAM service answers. What an operation does not answer is empty.
#[derive(Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct IamResponse {
    /// The user asked for or written.
    pub user: Option<UserRecord>,
    #[serde(deserialize_with = "nullable")]
    /// `list-users`: all of them, or a page.
    pub users: Vec<UserRecord>,
    /// The workspace asked for or written.
    pub workspace: Option<WorkspaceRecord>,
    #[serde(deserialize_with = "nullable")]
    /// `list-workspaces` and `list-my-workspaces`: all of them, or a page.
    pub workspaces: Vec<WorkspaceRecord>,
    #[serde(deserialize_with = "nullable")]
    /// `create-api-key`: the key in clear text, `tg_` and 32 characters. It cannot be returned again.
    pub api_key_plaintext: String,
    /// `create-api-key`: what is known of the key from now on.
    pub api_key: Option<ApiKeyRecord>,
    #[serde(deserialize_with = "nullable")]
    /// `list-api-keys`: the keys of the user.
    pub api_keys: Vec<ApiKeyRecord>,
    #[serde(deserialize_with = "nullable")]
    /// `login`, `mint-token`: a signed token, good for an hour.
    pub jwt: String,
    #[serde(deserialize_with = "nullable")]
    /// When the token ends, as text in RFC 3339.
    pub jwt_expires: String,
    #[serde(deserialize_with = "nullable")]
    /// `rotate-signing-key`: the public key of tokens from now on, in PEM; `get-signing-key-public`: all that verify, one
    /// after another.
    pub signing_key_public: String,
    #[serde(deserialize_with = "nullable")]
    /// `resolve-api-key`: user whom the key speaks for.
    pub resolved_user_id: String,
    #[serde(deserialize_with = "nullable")]
    /// `resolve-api-key`: where requests of the key go that name no workspace.
    pub resolved_default_workspace: String,
    #[serde(deserialize_with = "nullable")]
    /// `resolve-api-key`: the user's roles.
    pub resolved_roles: Vec<String>,
    /// `resolve-api-key`: the only capabilities that the key has; empty: all of the user's. Ours.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub resolved_scopes: Vec<String>,
    /// `resolve-api-key`: id of the key. Ours.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub resolved_key_id: String,
    #[serde(deserialize_with = "nullable")]
    /// `reset-password`: the new one. It cannot be returned again.
    pub temporary_password: String,
    #[serde(deserialize_with = "nullable")]
    /// `bootstrap`: id of the first administrator.
    pub bootstrap_admin_user_id: String,
    #[serde(deserialize_with = "nullable")]
    /// `bootstrap`: the first key in clear text. It cannot be returned again.
    pub bootstrap_admin_api_key: String,
    #[serde(deserialize_with = "nullable")]
    /// `bootstrap-status`: whether the system still waits for its first key.
    pub bootstrap_available: bool,
    #[serde(deserialize_with = "nullable")]
    /// `authorise`: whether it is allowed.
    pub decision_allow: bool,
    #[serde(deserialize_with = "nullable")]
    /// How long the answer of `authorise` or `resolve-api-key` may be remembered, in seconds; 0: not at all.
    pub decision_ttl_seconds: i64,
    #[serde(deserialize_with = "nullable")]
    /// `authorise-many`: a JSON list of `{allow, ttl}` in text, in the order of the checks; `ttl` in seconds.
    pub decisions_json: String,
    #[serde(deserialize_with = "nullable")]
    /// The group, as a JSON object in text: `id`, `name`, `description`, `enabled`, `created`.
    pub group_json: String,
    #[serde(deserialize_with = "nullable")]
    /// `list-groups`: a JSON list of them in text.
    pub groups_json: String,
    #[serde(deserialize_with = "nullable")]
    /// `list-group-members`: a JSON list of `{member_type, member_id, username}` in text.
    pub members_json: String,
    #[serde(deserialize_with = "nullable")]
    /// The grants of a group or user: a JSON list of `{capability, workspace}` in text.
    pub grants_json: String,
    #[serde(deserialize_with = "nullable")]
    /// What a user may do by roles and grants, as a JSON object in text: `user_id`, and `permissions`, a list of
    /// `{capability, workspace, sources}`.
    pub effective_permissions_json: String,
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    /// A listing: where the next page begins, for `after`; empty if there is none. Ours.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub next: String,
}

unseen!(IamResponse);
message!(IamResponse);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_secret_is_printed() {
        let secret = || "hunter2".to_owned();
        let ask = IamRequest {
            operation: "login".into(),
            password: secret(),
            new_password: secret(),
            api_key: secret(),
            user: Some(UserInput {
                password: secret(),
                ..UserInput::default()
            }),
            ..IamRequest::default()
        };
        let answer = IamResponse {
            jwt: secret(),
            api_key_plaintext: secret(),
            temporary_password: secret(),
            bootstrap_admin_api_key: secret(),
            ..IamResponse::default()
        };
        let shown = format!("{ask:?} {answer:?} {:?}", ask.user);
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains(r#""operation":"login""#), "{shown}");
        assert_eq!(shown.matches("***").count(), 9, "{shown}");
    }
}
