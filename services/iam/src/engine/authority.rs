//! What somebody may do, and over whom.
//!
//! The gateway lets an operation in by the workspace that it names. Which user it turns out to be about is known here only,
//! so that is looked at here: nobody manages users of a workspace where they may not, nor anybody who may more than they
//! may themselves, nor gives away what they do not have. Administrators may. Whoever asks from inside the system names no
//! actor.

use std::collections::BTreeSet;

use tg_schemas::Error;
use tg_schemas::msg::IamRequest;
use tg_schemas::roles::ROLE;

use super::check::{not_found, not_permitted};
use super::{ADMIN, Directory, Grant, Grantee, Group, Role, RoleScope, User};

/// What a user is known not to have.
const TOO_MUCH: &str = "nobody gives or manages more than they may do themselves";

/// Everything that was granted to a user and counts, with the group that it comes by.
pub(crate) fn granted<'a>(
    directory: &'a Directory,
    user: &User,
) -> impl Iterator<Item = (&'a Grant, Option<&'a Group>)> + use<'a> {
    let own = directory.grants(&Grantee::User(user.id.clone()));
    let groups = directory.groups_of(&user.id).filter(|group| group.enabled);
    let by_groups = groups.flat_map(|group| {
        let grants = directory.grants(&Grantee::Group(group.id.clone()));
        grants.map(move |grant| (grant, Some(group)))
    });
    own.map(|grant| (grant, None)).chain(by_groups)
}

impl Grant {
    /// Whether it is of a capability, by its name or by a role's.
    fn has(&self, capability: &str) -> bool {
        self.capability == capability
            || Role::find(&self.capability).is_some_and(|role| role.has(capability))
    }

    /// Whether it reaches a workspace; without one, the system.
    fn reaches(&self, target: Option<&str>) -> bool {
        self.workspace.is_empty() || target == Some(self.workspace.as_str())
    }
}

/// Whether a user has a role in a workspace: they may do all that it stands for, by whatever roles and grants.
fn has_role(directory: &Directory, user_id: &str, name: &str, target: Option<&str>) -> bool {
    let all = meant(name);
    Role::find(name).is_some()
        && all
            .iter()
            .all(|one| allows(directory, user_id, one, target))
}

/// Denied unless a role or a grant of an active user has the capability and reaches the target.
pub(crate) fn allows(
    directory: &Directory,
    user_id: &str,
    capability: &str,
    target: Option<&str>,
) -> bool {
    if let Some(name) = capability.strip_prefix(ROLE) {
        return has_role(directory, user_id, name, target);
    }
    let Some(user) = directory.user(user_id) else {
        return false;
    };
    let by_role = |role: &Role| {
        let reaches = match (role.scope, target) {
            (RoleScope::All, _) | (_, None) => true,
            (RoleScope::Home, Some(workspace)) => workspace == user.home,
        };
        reaches && role.has(capability)
    };
    directory.is_active(user)
        && (roles(user).any(by_role)
            || granted(directory, user)
                .any(|(grant, _)| grant.has(capability) && grant.reaches(target)))
}

/// Whether a user has a capability in every workspace, or in one.
fn holds(directory: &Directory, user: &User, capability: &str, workspace: &str) -> bool {
    let by_role = |role: &Role| {
        let reaches = match role.scope {
            RoleScope::All => true,
            RoleScope::Home => !workspace.is_empty() && workspace == user.home,
        };
        reaches && role.has(capability)
    };
    let reaches = |grant: &Grant| grant.workspace.is_empty() || grant.workspace == workspace;
    roles(user).any(by_role)
        || granted(directory, user).any(|(grant, _)| grant.has(capability) && reaches(grant))
}

/// Whether a user has a capability in every workspace.
pub(crate) fn everywhere(directory: &Directory, user: &User, capability: &str) -> bool {
    holds(directory, user, capability, "")
}

/// Whether a user may do anything in a workspace that is there. Others' workspaces are not there for them.
pub(crate) fn enters(directory: &Directory, user: &User, workspace: &str) -> bool {
    directory.is_open(workspace)
        && (workspace == user.home
            || roles(user).any(|role| role.scope == RoleScope::All)
            || granted(directory, user).any(|(grant, _)| grant.reaches(Some(workspace))))
}

fn roles(user: &User) -> impl Iterator<Item = &'static Role> {
    user.roles.iter().filter_map(|name| Role::find(name))
}

/// All that a capability or role stands for.
pub(crate) fn meant(name: &str) -> Vec<&'static str> {
    let known = |capability: &&str| {
        *capability == name || Role::find(name).is_some_and(|role| role.has(capability))
    };
    let all = super::ROLES.iter().flat_map(|role| role.adds);
    all.copied().filter(known).collect()
}

/// Whoever asks, if they are to be held to what they may do.
fn held<'a>(directory: &'a Directory, ask: &IamRequest) -> Result<Option<&'a User>, Error> {
    if ask.actor.is_empty() {
        return Ok(None);
    }
    let actor = directory
        .user(&ask.actor)
        .filter(|one| directory.is_active(one));
    let actor = actor.ok_or_else(|| not_permitted(TOO_MUCH))?;
    Ok((!actor.roles.contains(ADMIN)).then_some(actor))
}

/// Whoever asks may give roles to somebody at home in a workspace.
pub(crate) fn may_give_roles<'a>(
    directory: &Directory,
    ask: &IamRequest,
    names: impl IntoIterator<Item = &'a String>,
    home: &str,
) -> Result<(), Error> {
    let grants = names.into_iter().filter_map(|name| Role::find(name));
    let grants = grants.map(|role| Grant {
        capability: role.name.to_owned(),
        workspace: match role.scope {
            RoleScope::All => String::new(),
            RoleScope::Home => home.to_owned(),
        },
    });
    let grants: Vec<Grant> = grants.collect();
    may_give(directory, ask, &grants)
}

/// Whoever asks may give these.
pub(crate) fn may_give<'a>(
    directory: &Directory,
    ask: &IamRequest,
    grants: impl IntoIterator<Item = &'a Grant>,
) -> Result<(), Error> {
    let Some(actor) = held(directory, ask)? else {
        return Ok(());
    };
    let all = grants.into_iter().all(|grant| {
        let mut meant = meant(&grant.capability).into_iter();
        meant.all(|capability| holds(directory, actor, capability, &grant.workspace))
    });
    all.then_some(()).ok_or_else(|| not_permitted(TOO_MUCH))
}

/// Whoever asks may manage this user: it may do nothing that they may not.
pub(crate) fn may_manage(
    directory: &Directory,
    ask: &IamRequest,
    user: &User,
) -> Result<(), Error> {
    may_give_roles(directory, ask, &user.roles, &user.home)?;
    let grants: BTreeSet<&Grant> = granted(directory, user).map(|(grant, _)| grant).collect();
    may_give(directory, ask, grants)
}

/// Whether whoever asks may do this at all with users of a workspace. Others' users are not there for them.
pub(crate) fn sees(directory: &Directory, ask: &IamRequest, home: &str) -> bool {
    match held(directory, ask) {
        Ok(None) => true,
        Ok(Some(actor)) => allows(directory, &actor.id, needs(&ask.operation), Some(home)),
        Err(_) => false,
    }
}

/// Whether whoever asks may know of grants in a workspace, or of those everywhere.
pub(crate) fn sees_grants(directory: &Directory, ask: &IamRequest, workspace: &str) -> bool {
    match held(directory, ask) {
        Ok(None) => true,
        Ok(Some(actor)) => holds(directory, actor, needs(&ask.operation), workspace),
        Err(_) => false,
    }
}

/// Whoever asks may say what policies are to know of a user wherever the user may do something.
pub(crate) fn may_mint(directory: &Directory, ask: &IamRequest, user: &User) -> Result<(), Error> {
    let Some(actor) = held(directory, ask)? else {
        return Ok(());
    };
    let by_roles = roles(user).map(|role| match role.scope {
        RoleScope::All => "",
        RoleScope::Home => user.home.as_str(),
    });
    let by_grants = granted(directory, user).map(|(grant, _)| grant.workspace.as_str());
    let mut reached = by_roles.chain(by_grants);
    let mints = |workspace: &str| holds(directory, actor, "mint-token", workspace);
    let text = "minting needs mint-token in every workspace that the user may do something in";
    let all = reached.all(mints);
    all.then_some(()).ok_or_else(|| not_permitted(text))
}

/// Others' users are not there, as an error.
pub(crate) fn seen(directory: &Directory, ask: &IamRequest, user: &User) -> Result<(), Error> {
    let sees = sees(directory, ask, &user.home);
    sees.then_some(()).ok_or_else(|| not_found("user"))
}

/// What operations about a user take, as in the gateway's table: looked at once more in the user's own workspace.
fn needs(operation: &str) -> &'static str {
    match operation {
        "list-users" | "get-user" => "users:read",
        "update-user" => "users:write",
        "create-api-key" | "list-api-keys" | "revoke-api-key" => "keys:admin",
        "mint-token" => "mint-token",
        "create-user" | "disable-user" | "enable-user" | "delete-user" | "reset-password" => {
            "users:admin"
        }
        _ => "iam:admin",
    }
}
