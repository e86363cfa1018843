//! The operations by name.

use tg_schemas::msg::IamRequest;
use tg_schemas::{Error, ErrorCode};

use super::{
    Call, Directory, Effect, authorise, external, groups, keys, passwords, tokens, users,
    workspaces,
};

/// Works out what an operation does.
pub(crate) fn run(directory: &Directory, call: &Call, ask: &IamRequest) -> Result<Effect, Error> {
    match ask.operation.as_str() {
        "bootstrap" => users::bootstrap(directory, call),
        "bootstrap-status" => Ok(users::bootstrap_status(directory).into()),
        "whoami" => Ok(users::whoami(directory, ask)?.into()),
        "create-user" => users::create(directory, call, ask),
        "list-users" => Ok(users::list(directory, ask)?.into()),
        "get-user" => Ok(users::get(directory, ask)?.into()),
        "update-user" => users::update(directory, call, ask),
        "disable-user" => users::disable(directory, call, ask),
        "enable-user" => users::enable(directory, ask),
        "delete-user" => users::delete(directory, call, ask),
        "create-api-key" => keys::create(directory, call, ask),
        "list-api-keys" => Ok(keys::list(directory, ask)?.into()),
        "revoke-api-key" => keys::revoke(directory, call, ask),
        "create-workspace" => workspaces::create(directory, call, ask),
        "restore-workspace" => workspaces::restore(directory, call, ask),
        "list-workspaces" => Ok(workspaces::list(directory, ask)?.into()),
        "list-my-workspaces" => Ok(workspaces::list_mine(directory, ask)?.into()),
        "get-workspace" => Ok(workspaces::get(directory, ask)?.into()),
        "update-workspace" => workspaces::update(directory, call, ask),
        "enable-workspace" => workspaces::enable(directory, ask),
        // What is deleted is closed first; the rest of it is the handler's.
        "disable-workspace" | "delete-workspace" => workspaces::disable(directory, call, ask),
        "authenticate-anonymous" => Err(super::check::auth_failed()),
        "resolve-api-key" => Ok(keys::resolve(directory, call.now, ask)?.into()),
        "authorise" => Ok(authorise::one(directory, ask)?.into()),
        "authorise-many" => Ok(authorise::many(directory, ask)?.into()),
        "resolve-token" => Ok(tokens::resolve(directory, call.now, ask)?.into()),
        "get-signing-key-public" => Ok(tokens::public(directory, call.now).into()),
        "login" => match &call.external {
            Some(who) => external::login(directory, call, ask, who),
            None => Ok(tokens::login(directory, call, ask)?.into()),
        },
        "mint-token" => Ok(tokens::mint(directory, call, ask)?.into()),
        "rotate-signing-key" => tokens::rotate(directory, call),
        "revoke-signing-key" => tokens::revoke(directory, call, ask),
        "change-password" => passwords::change(directory, call, ask),
        "reset-password" => passwords::reset(directory, call, ask),
        _ => of_groups(directory, call, ask),
    }
}

/// The operations on groups and grants.
fn of_groups(directory: &Directory, call: &Call, ask: &IamRequest) -> Result<Effect, Error> {
    match ask.operation.as_str() {
        "create-group" => groups::create(directory, call, ask),
        "get-group" => Ok(groups::get(directory, ask)?.into()),
        "list-groups" => Ok(groups::list(directory, ask)?.into()),
        "update-group" => groups::update(directory, ask),
        "delete-group" => groups::delete(directory, ask),
        "add-group-member" => groups::add_member(directory, ask),
        "remove-group-member" => groups::remove_member(directory, ask),
        "list-group-members" => Ok(groups::list_members(directory, ask)?.into()),
        "add-group-grant" | "add-user-grant" => groups::add_grant(directory, ask),
        "remove-group-grant" | "remove-user-grant" => groups::remove_grant(directory, ask),
        "list-group-grants" | "list-user-grants" => Ok(groups::list_grants(directory, ask)?.into()),
        "resolve-effective-permissions" => Ok(groups::effective(directory, ask)?.into()),
        _ => Err(Error::new(ErrorCode::BadOperation, "Bad operation")),
    }
}

/// What gateways ask at each request: who somebody is, and what they may do. Answered from memory, at once.
const CHECKS: [&str; 6] = [
    "authenticate-anonymous",
    "resolve-api-key",
    "resolve-token",
    "get-signing-key-public",
    "authorise",
    "authorise-many",
];

/// Whether an operation is one of those.
pub(crate) fn is_check(operation: &str) -> bool {
    CHECKS.contains(&operation)
}

/// Operations that take nothing away from what others remember: nobody needs to be looked at again. A grant is not among
/// them: that it was refused before is remembered, too.
const GRANTING: [&str; 5] = [
    "bootstrap",
    "create-user",
    "create-api-key",
    "create-workspace",
    "create-group",
];

/// Whether decisions that others remember may be wrong once an operation has changed something.
pub(crate) fn revokes(operation: &str) -> bool {
    !GRANTING.contains(&operation)
}
