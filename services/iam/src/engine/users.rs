//! Operations on users, and the first of them.

use std::collections::BTreeSet;

use tg_schemas::msg::{IamRequest, IamResponse, UserInput};
use tg_schemas::paging::{Asked, Page};
use tg_schemas::{Error, ErrorCode};

use super::check::{auth_failed, invalid, not_found, not_permitted, optional, required, roles};
use super::{
    ADMIN, Call, Change, DEFAULT_WORKSPACE, Directory, Effect, Key, User, Workspace, user_record,
};

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

/// Makes a user. It works by API keys: passwords are not there yet.
pub(super) fn create(
    directory: &Directory,
    call: &Call,
    ask: &IamRequest,
) -> Result<Effect, Error> {
    let input = input(ask)?;
    no_password(input)?;
    let home = required("workspace", &ask.workspace)?;
    let username = required("user.username", &input.username)?;
    let name = optional("user.name", &input.name)?;
    let email = optional("user.email", &input.email)?;
    let roles = roles("user.roles", &input.roles)?;
    if !directory.is_open(home) {
        return Err(not_found("workspace"));
    }
    if let Some(known) = directory.named(username) {
        if !call.question.is_empty() && known.made_by == call.question {
            return Ok(one(known).into());
        }
        return Err(Error::typed("duplicate", "user.username: is taken"));
    }
    if directory.users().len() >= MAX_USERS {
        return Err(Error::new(ErrorCode::TooLarge, "there are too many users"));
    }
    let user = User {
        id: call.fresh.user_id.clone(),
        home: home.to_owned(),
        username: username.to_owned(),
        name: if name.is_empty() { username } else { name }.to_owned(),
        email: email.to_owned(),
        roles,
        enabled: input.enabled,
        must_change_password: input.must_change_password,
        created: call.now,
        made_by: call.question.clone(),
    };
    Ok(put(user))
}

/// All users, or those of one workspace, by name.
pub(super) fn list(directory: &Directory, ask: &IamRequest) -> Result<IamResponse, Error> {
    let asked = Asked::read(&ask.operation, ask.limit, &ask.after)?;
    let mut users: Vec<&User> = directory
        .users()
        .filter(|user| ask.workspace.is_empty() || user.home == ask.workspace)
        .collect();
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

/// Changes what is told and keeps what is not. A user is enabled again by `enable-user` only: the wire
/// cannot tell an omitted `enabled` from a true one.
pub(super) fn update(directory: &Directory, ask: &IamRequest) -> Result<Effect, Error> {
    let user = find(directory, ask)?;
    let input = input(ask)?;
    no_password(input)?;
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
    }
    new.enabled &= input.enabled;
    new.must_change_password |= input.must_change_password;
    if !(new.enabled && new.roles.contains(ADMIN)) {
        keep_an_admin(directory, user)?;
    }
    Ok(put(new))
}

/// Disables a user and removes its keys.
pub(super) fn disable(directory: &Directory, ask: &IamRequest) -> Result<Effect, Error> {
    let user = find(directory, ask)?;
    keep_an_admin(directory, user)?;
    let mut new = user.clone();
    new.enabled = false;
    let mut effect = put(new);
    effect.changes.extend(without_keys(directory, user));
    Ok(effect)
}

/// Enables a user. Its keys are not restored.
pub(super) fn enable(directory: &Directory, ask: &IamRequest) -> Result<Effect, Error> {
    let mut new = find(directory, ask)?.clone();
    new.enabled = true;
    Ok(put(new))
}

/// Removes a user and its keys.
pub(super) fn delete(directory: &Directory, ask: &IamRequest) -> Result<Effect, Error> {
    let user = find(directory, ask)?;
    keep_an_admin(directory, user)?;
    let mut changes: Vec<Change> = without_keys(directory, user).collect();
    changes.push(Change::RemoveUser(user.id.clone()));
    Ok(Effect {
        changes,
        ..Effect::default()
    })
}

/// The user that a request names; one of another workspace than it names is not there.
pub(super) fn find<'a>(directory: &'a Directory, ask: &IamRequest) -> Result<&'a User, Error> {
    let id = required("user_id", &ask.user_id)?;
    in_workspace(directory, id, &ask.workspace)
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

/// Nobody may lock everybody out.
fn keep_an_admin(directory: &Directory, gone: &User) -> Result<(), Error> {
    let counts = gone.roles.contains(ADMIN) && directory.is_active(gone);
    if counts && !directory.keeps_admin(|user| user.id == gone.id) {
        return Err(not_permitted("this is the last active administrator"));
    }
    Ok(())
}

fn input(ask: &IamRequest) -> Result<&UserInput, Error> {
    ask.user
        .as_ref()
        .ok_or_else(|| invalid("user", "is required"))
}

fn no_password(input: &UserInput) -> Result<(), Error> {
    if input.password.is_empty() {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::NotImplemented,
        "user.password: passwords are not implemented yet; leave it out and create an API key for the user",
    ))
}

fn one(user: &User) -> IamResponse {
    IamResponse {
        user: Some(user_record(user)),
        ..IamResponse::default()
    }
}

fn put(user: User) -> Effect {
    Effect {
        answer: one(&user),
        changes: vec![Change::PutUser(user)],
        quiet: false,
    }
}
