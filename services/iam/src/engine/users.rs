//! Operations on users, and the first of them.

use std::collections::{BTreeMap, BTreeSet};

use tg_schemas::msg::{IamRequest, IamResponse, UserInput};
use tg_schemas::paging::{Asked, Page};
use tg_schemas::{Error, ErrorCode};

use super::authority::{may_give_roles, may_manage, seen, sees};
use super::check::{
    auth_failed, invalid, none_in_update, not_found, not_permitted, optional, required, roles,
    username,
};
use super::{
    ADMIN, Call, Change, DEFAULT_WORKSPACE, Directory, Effect, Key, User, Workspace, user_record,
};
use crate::external::PREFIX;

/// All users are held in memory.
const MAX_USERS: usize = 100_000;

/// Makes the first administrator and its key. Once: while there is no user, for somebody who may have it.
pub(super) fn bootstrap(directory: &Directory, call: &Call) -> Result<Effect, Error> {
    if directory.users().len() > 0 || !call.vouched {
        return Err(auth_failed());
    }
    let user = User {
        id: call.fresh.user_id.clone(),
        home: DEFAULT_WORKSPACE.to_owned(),
        username: ADMIN.to_owned(),
        name: "Administrator".to_owned(),
        email: String::new(),
        roles: BTreeSet::from([ADMIN.to_owned()]),
        enabled: true,
        must_change_password: true,
        password: None,
        session: 0,
        created: call.now,
        made_by: call.question.clone(),
    };
    let key = Key {
        id: call.fresh.key_id.clone(),
        user_id: user.id.clone(),
        name: "bootstrap".to_owned(),
        prefix: call.fresh.key.prefix(),
        hash: call.fresh.key.hash(),
        expires: None,
        scopes: BTreeSet::new(),
        created: call.now,
        made_by: call.question.clone(),
    };
    let answer = IamResponse {
        bootstrap_admin_user_id: user.id.clone(),
        bootstrap_admin_api_key: call.fresh.key.reveal().to_owned(),
        ..IamResponse::default()
    };
    let mut changes = vec![Change::PutUser(user), Change::PutKey(key)];
    if !directory.is_open(DEFAULT_WORKSPACE) {
        // Its home must be open, or its key would be refused.
        let home = directory.workspace(DEFAULT_WORKSPACE);
        changes.push(Change::PutWorkspace(Workspace {
            id: DEFAULT_WORKSPACE.to_owned(),
            name: home.map_or_else(|| DEFAULT_WORKSPACE.to_owned(), |w| w.name.clone()),
            enabled: true,
            created: home.map_or(call.now, |w| w.created),
            restoring: String::new(),
            generation: home.and_then(|w| w.generation),
        }));
    }
    Ok(Effect {
        changes,
        answer,
        quiet: false,
    })
}

/// Whether `bootstrap` would work.
pub(super) fn bootstrap_status(directory: &Directory) -> IamResponse {
    IamResponse {
        bootstrap_available: directory.users().len() == 0,
        ..IamResponse::default()
    }
}

/// The caller.
pub(super) fn whoami(directory: &Directory, ask: &IamRequest) -> Result<IamResponse, Error> {
    let user = directory.user(&ask.actor).ok_or_else(auth_failed)?;
    Ok(one(user))
}

/// Makes a user. Without a password it works by API keys only.
pub(super) fn create(
    directory: &Directory,
    call: &Call,
    ask: &IamRequest,
) -> Result<Effect, Error> {
    let input = input(ask)?;
    // Official commands name none where it is the caller's own.
    let home = match (ask.workspace.as_str(), directory.user(&ask.actor)) {
        ("", Some(actor)) => actor.home.as_str(),
        (named, _) => required("workspace", named)?,
    };
    let username = username("user.username", &input.username)?;
    if username.starts_with(PREFIX) {
        let text = "must not begin with oidc:, as those of an external issuer do";
        return Err(invalid("user.username", text));
    }
    let name = optional("user.name", &input.name)?;
    let email = optional("user.email", &input.email)?;
    let roles = roles("user.roles", &input.roles)?;
    if !directory.is_open(home) || !sees(directory, ask, home) {
        return Err(not_found("workspace"));
    }
    may_give_roles(directory, ask, &roles, home)?;
    if let Some(known) = directory.named(username) {
        if !call.question.is_empty() && known.made_by == call.question {
            return Ok(one(known).into());
        }
        return Err(Error::typed("duplicate", "user.username: is taken"));
    }
    has_room(directory, call, home)?;
    let user = User {
        id: call.fresh.user_id.clone(),
        home: home.to_owned(),
        username: username.to_owned(),
        name: if name.is_empty() { username } else { name }.to_owned(),
        email: email.to_owned(),
        roles,
        enabled: input.enabled,
        must_change_password: input.must_change_password,
        password: call.fresh.password.clone(),
        session: 0,
        created: call.now,
        made_by: call.question.clone(),
    };
    Ok(put(user))
}

/// Whether there is room for another one at home in a workspace.
pub(super) fn has_room(directory: &Directory, call: &Call, home: &str) -> Result<(), Error> {
    if directory.users().len() >= MAX_USERS {
        return Err(Error::new(ErrorCode::TooLarge, "there are too many users"));
    }
    // Whoever manages one workspace does not take the places of all.
    let at_home = directory.users().filter(|user| user.home == home).count();
    if at_home >= call.workspace_users {
        let text = "the workspace has as many users as it may (iam.workspace_users)";
        return Err(Error::new(ErrorCode::TooLarge, text));
    }
    Ok(())
}

/// All users, or those of one workspace, by name.
pub(super) fn list(directory: &Directory, ask: &IamRequest) -> Result<IamResponse, Error> {
    let asked = Asked::read(&ask.operation, ask.limit, &ask.after)?;
    let mut users: Vec<&User> = directory
        .users()
        .filter(|user| ask.workspace.is_empty() || user.home == ask.workspace)
        .collect();
    // Few workspaces have many users.
    let mut shown: BTreeMap<&str, bool> = BTreeMap::new();
    users.retain(|user| {
        let home = user.home.as_str();
        *shown
            .entry(home)
            .or_insert_with(|| sees(directory, ask, home))
    });
    // Names are unique and never change.
    users.sort_by(|a, b| a.username.cmp(&b.username));
    let page = Page::of(asked, users, |user| user.username.as_str(), user_record)?;
    Ok(IamResponse {
        users: page.entries,
        next: page.next,
        ..IamResponse::default()
    })
}

/// One user.
pub(super) fn get(directory: &Directory, ask: &IamRequest) -> Result<IamResponse, Error> {
    Ok(one(find(directory, ask)?))
}

/// Changes what is told and keeps what is not. Of flags, the wire cannot tell an omitted one from its usual value; where
/// `told` names it, it was said.
pub(super) fn update(
    directory: &Directory,
    call: &Call,
    ask: &IamRequest,
) -> Result<Effect, Error> {
    let user = find(directory, ask)?;
    let input = input(ask)?;
    none_in_update(&input.password)?;
    may_manage(directory, ask, user)?;
    if !input.username.is_empty() && input.username != user.username {
        return Err(invalid("user.username", "cannot be changed"));
    }
    let mut new = user.clone();
    if !input.name.is_empty() {
        new.name = optional("user.name", &input.name)?.to_owned();
    }
    if !input.email.is_empty() {
        new.email = optional("user.email", &input.email)?.to_owned();
    }
    if !input.roles.is_empty() {
        new.roles = roles("user.roles", &input.roles)?;
        may_give_roles(directory, ask, &new.roles, &user.home)?;
    }
    let told = |name: &str| input.told.iter().any(|told| told == name);
    new.enabled = input.enabled && (new.enabled || told("enabled"));
    if !new.enabled && user.enabled {
        new.session += 1;
    }
    new.must_change_password =
        input.must_change_password || (new.must_change_password && !told("must_change_password"));
    if !(new.enabled && new.roles.contains(ADMIN)) {
        keep_an_admin(directory, call, user)?;
    }
    // Who only got another name is to be looked at by nobody.
    let quiet = new.roles == user.roles && new.enabled == user.enabled;
    Ok(Effect { quiet, ..put(new) })
}

/// Disables a user and removes its keys.
pub(super) fn disable(
    directory: &Directory,
    call: &Call,
    ask: &IamRequest,
) -> Result<Effect, Error> {
    let user = find(directory, ask)?;
    may_manage(directory, ask, user)?;
    keep_an_admin(directory, call, user)?;
    let mut new = user.clone();
    new.enabled = false;
    new.session += 1;
    let mut effect = put(new);
    effect.changes.extend(without_keys(directory, user));
    Ok(effect)
}

/// Enables a user. Its keys are not restored.
pub(super) fn enable(directory: &Directory, ask: &IamRequest) -> Result<Effect, Error> {
    let mut new = find(directory, ask)?.clone();
    may_manage(directory, ask, &new)?;
    new.enabled = true;
    Ok(put(new))
}

/// Removes a user and its keys.
pub(super) fn delete(
    directory: &Directory,
    call: &Call,
    ask: &IamRequest,
) -> Result<Effect, Error> {
    let user = find(directory, ask)?;
    may_manage(directory, ask, user)?;
    keep_an_admin(directory, call, user)?;
    let mut changes: Vec<Change> = without_keys(directory, user).collect();
    changes.push(Change::RemoveUser(user.id.clone()));
    Ok(Effect {
        changes,
        ..Effect::default()
    })
}

/// The user that a request names; one of another workspace than it names, or that the asker may see, is not there.
pub(super) fn find<'a>(directory: &'a Directory, ask: &IamRequest) -> Result<&'a User, Error> {
    let id = required("user_id", &ask.user_id)?;
    let user = in_workspace(directory, id, &ask.workspace)?;
    seen(directory, ask, user)?;
    Ok(user)
}

/// A user by id, seen from a workspace if one is named.
pub(super) fn in_workspace<'a>(
    directory: &'a Directory,
    id: &str,
    workspace: &str,
) -> Result<&'a User, Error> {
    directory
        .user(id)
        .filter(|user| workspace.is_empty() || user.home == workspace)
        .ok_or_else(|| not_found("user"))
}

/// Removes a user's keys.
pub(super) fn without_keys(directory: &Directory, user: &User) -> impl Iterator<Item = Change> {
    directory
        .keys_of(&user.id)
        .map(|key| Change::RemoveKey(key.id.clone()))
}

/// Nobody may lock everybody out: an administrator of ours stays who can come in. Those of an external issuer do not count,
/// neither as who stays nor as who goes.
pub(super) fn keep_an_admin(directory: &Directory, call: &Call, gone: &User) -> Result<(), Error> {
    let counts = gone.roles.contains(ADMIN) && directory.is_active(gone) && !gone.is_external();
    let stays = |user: &User| user.id != gone.id && directory.comes_in(user, call.now, |_| false);
    if counts && !directory.keeps_admin(stays) {
        return Err(not_permitted("this is the last active administrator"));
    }
    Ok(())
}

fn input(ask: &IamRequest) -> Result<&UserInput, Error> {
    ask.user
        .as_ref()
        .ok_or_else(|| invalid("user", "is required"))
}

fn one(user: &User) -> IamResponse {
    IamResponse {
        user: Some(user_record(user)),
        ..IamResponse::default()
    }
}

pub(super) fn put(user: User) -> Effect {
    Effect {
        answer: one(&user),
        changes: vec![Change::PutUser(user)],
        quiet: false,
    }
}
