//! The operations by name.

use tg_schemas::msg::IamRequest;
use tg_schemas::{Error, ErrorCode};

use super::{Call, Directory, Effect, authorise, keys, users, workspaces};

/// Works out what an operation does.
pub(crate) fn run(directory: &Directory, call: &Call, ask: &IamRequest) -> Result<Effect, Error> {
    match ask.operation.as_str() {
        "bootstrap" => users::bootstrap(directory, call),
        "bootstrap-status" => Ok(users::bootstrap_status(directory).into()),
        "whoami" => Ok(users::whoami(directory, ask)?.into()),
        "create-user" => users::create(directory, call, ask),
        "list-users" => Ok(users::list(directory, ask)?.into()),
        "get-user" => Ok(users::get(directory, ask)?.into()),
        "update-user" => users::update(directory, ask),
        "disable-user" => users::disable(directory, ask),
        "enable-user" => users::enable(directory, ask),
        "delete-user" => users::delete(directory, ask),
        "create-api-key" => keys::create(directory, call, ask),
        "list-api-keys" => Ok(keys::list(directory, ask)?.into()),
        "revoke-api-key" => keys::revoke(directory, ask),
        "create-workspace" => workspaces::create(directory, call, ask),
        "restore-workspace" => workspaces::restore(directory, call, ask),
        "list-workspaces" => Ok(workspaces::list(directory, ask)?.into()),
        "list-my-workspaces" => Ok(workspaces::list_mine(directory, ask)?.into()),
        "get-workspace" => Ok(workspaces::get(directory, ask)?.into()),
        "update-workspace" => workspaces::update(directory, ask),
        "enable-workspace" => workspaces::enable(directory, ask),
        // What is deleted is closed first; the rest of it is the handler's.
        "disable-workspace" | "delete-workspace" => workspaces::disable(directory, ask),
        "authenticate-anonymous" => Err(super::check::auth_failed()),
        "resolve-api-key" => Ok(keys::resolve(directory, call.now, ask)?.into()),
        "authorise" => Ok(authorise::one(directory, ask)?.into()),
        "authorise-many" => Ok(authorise::many(directory, ask)?.into()),
        other => Err(absent(other)),
    }
}

/// Operations that only add: nobody needs to be looked at again.
const GRANTING: [&str; 4] = [
    "bootstrap",
    "create-user",
    "create-api-key",
    "create-workspace",
];

/// Whether decisions that others remember may be wrong once an operation has changed something.
pub(crate) fn revokes(operation: &str) -> bool {
    !GRANTING.contains(&operation)
}

/// Why an operation is not there: not yet, or not at all.
fn absent(operation: &str) -> Error {
    let what = match operation {
        "login" | "change-password" | "reset-password" => "passwords are",
        "mint-token" | "rotate-signing-key" | "get-signing-key-public" => "signed tokens are",
        "create-group"
        | "get-group"
        | "list-groups"
        | "update-group"
        | "delete-group"
        | "add-group-member"
        | "remove-group-member"
        | "list-group-members" => "groups are",
        "add-group-grant"
        | "remove-group-grant"
        | "list-group-grants"
        | "add-user-grant"
        | "remove-user-grant"
        | "list-user-grants"
        | "resolve-effective-permissions" => "grants are",
        _ => return Error::new(ErrorCode::BadOperation, "Bad operation"),
    };
    Error::new(
        ErrorCode::NotImplemented,
        format!("{what} not implemented yet; use API keys"),
    )
}
