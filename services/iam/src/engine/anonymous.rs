//! The mode without users: everybody is one stub administrator and may do everything. Workspaces are
//! kept as in the other mode.

use chrono::DateTime;
use tg_schemas::Error;
use tg_schemas::msg::{IamRequest, IamResponse, UserRecord, WorkspaceInput};
use tg_schemas::paging::{Asked, Page};

use super::{ADMIN, Call, DEFAULT_WORKSPACE, Directory, Effect};

/// Id of everybody.
const ANONYMOUS: &str = "anonymous";

/// Works out what an operation does in this mode.
pub(crate) fn run(directory: &Directory, call: &Call, ask: &IamRequest) -> Result<Effect, Error> {
    let answer = match ask.operation.as_str() {
        "whoami" => IamResponse {
            user: Some(stub()),
            ..IamResponse::default()
        },
        "get-user" if ask.user_id == ANONYMOUS => IamResponse {
            user: Some(stub()),
            ..IamResponse::default()
        },
        "get-user" => return Err(Error::typed("not-found", "user not found")),
        "list-users" => {
            let asked = Asked::read(&ask.operation, ask.limit, &ask.after)?;
            let page = Page::of(asked, [stub()], |user| user.username.clone(), |user| user)?;
            IamResponse {
                users: page.entries,
                ..IamResponse::default()
            }
        }
        "bootstrap-status" => IamResponse::default(),
        "authenticate-anonymous" | "resolve-api-key" => IamResponse {
            resolved_user_id: ANONYMOUS.to_owned(),
            resolved_default_workspace: DEFAULT_WORKSPACE.to_owned(),
            resolved_roles: vec![ADMIN.to_owned()],
            ..IamResponse::default()
        },
        "authorise" => IamResponse {
            decision_allow: true,
            decision_ttl_seconds: super::DECISION_TTL,
            ..IamResponse::default()
        },
        "authorise-many" => super::decisions(super::checks(ask)?.iter().map(|_| true)),
        "list-my-workspaces" => {
            let all = IamRequest {
                operation: "list-workspaces".to_owned(),
                limit: ask.limit,
                after: ask.after.clone(),
                ..IamRequest::default()
            };
            return super::run(directory, call, &all);
        }
        "bootstrap"
        | "create-user"
        | "update-user"
        | "disable-user"
        | "enable-user"
        | "delete-user"
        | "create-api-key"
        | "list-api-keys"
        | "revoke-api-key"
        | "login"
        | "change-password"
        | "reset-password"
        | "mint-token"
        | "rotate-signing-key"
        | "revoke-signing-key"
        | "resolve-token"
        | "get-signing-key-public" => return Err(without_users()),
        operation if GROUPS.iter().any(|word| operation.contains(word)) => {
            return Err(without_users());
        }
        operation => {
            if closes(operation, ask.workspace_record.as_ref()) {
                return Err(Error::typed(
                    "operation-not-permitted",
                    "workspace_record.id: this is everybody's home while the system runs without users",
                ));
            }
            return super::run(directory, call, ask);
        }
    };
    Ok(answer.into())
}

/// The operations on groups and grants are about these.
const GROUPS: [&str; 3] = ["group", "grant", "permissions"];

fn without_users() -> Error {
    Error::typed(
        "operation-not-permitted",
        "this system runs without users and keys; start it with authentication to have them",
    )
}

/// Whether everybody's home would be closed.
fn closes(operation: &str, input: Option<&WorkspaceInput>) -> bool {
    input.is_some_and(|input| input.id == DEFAULT_WORKSPACE)
        && match operation {
            "disable-workspace" | "delete-workspace" => true,
            "update-workspace" => input.is_some_and(|input| !input.enabled),
            _ => false,
        }
}

fn stub() -> UserRecord {
    UserRecord {
        id: ANONYMOUS.to_owned(),
        default_workspace: DEFAULT_WORKSPACE.to_owned(),
        username: ANONYMOUS.to_owned(),
        name: "Anonymous User".to_owned(),
        roles: vec![ADMIN.to_owned()],
        created: super::stamp(DateTime::UNIX_EPOCH),
        ..UserRecord::default()
    }
}
