//! Operations on workspaces. Their registration in configuration and the end of their flows are the
//! handler's business.

use std::collections::BTreeSet;

use tg_schemas::msg::{IamRequest, IamResponse, WorkspaceInput};
use tg_schemas::paging::{Asked, Page};
use tg_schemas::{Error, ErrorCode, WorkspaceKey, limits};

use super::authority::{granted, may_manage};
use super::check::{
    auth_failed, invalid, not_found, not_permitted, optional, required, workspace_id,
};
use super::users::without_keys;
use super::{ADMIN, Call, Change, Directory, Effect, User, Workspace, workspace_record};

/// Makes a workspace; one that is there is returned as it is. It belongs to who asked last: a restoration that is under
/// way takes it back no more.
pub(super) fn create(
    directory: &Directory,
    call: &Call,
    ask: &IamRequest,
) -> Result<Effect, Error> {
    make(directory, call, input(ask)?, "")
}

/// Makes the record of a workspace that comes back; its users and keys do not.
pub(super) fn restore(
    directory: &Directory,
    call: &Call,
    ask: &IamRequest,
) -> Result<Effect, Error> {
    let enabled = WorkspaceInput {
        enabled: true,
        ..input(ask)?.clone()
    };
    make(directory, call, &enabled, &call.question)
}

fn make(
    directory: &Directory,
    call: &Call,
    input: &WorkspaceInput,
    restoring: &str,
) -> Result<Effect, Error> {
    let id = workspace_id("workspace_record.id", &input.id)?;
    let name = optional("workspace_record.name", &input.name)?;
    if let Some(known) = directory.workspace(id.as_str()) {
        return Ok(match known.restoring.is_empty() {
            true => one(known).into(),
            false => put(Workspace {
                restoring: restoring.to_owned(),
                ..known.clone()
            }),
        });
    }
    if directory.workspaces().len() >= limits::WORKSPACES {
        return Err(Error::new(
            ErrorCode::TooLarge,
            "there are too many workspaces",
        ));
    }
    Ok(put(Workspace {
        id: id.as_str().to_owned(),
        name: if name.is_empty() { id.as_str() } else { name }.to_owned(),
        enabled: input.enabled,
        created: call.now,
        restoring: restoring.to_owned(),
        generation: None,
    }))
}

/// A restoration is done: the record stays.
pub(crate) fn restored(
    directory: &Directory,
    call: &Call,
    ask: &IamRequest,
) -> Result<Effect, Error> {
    let known = existing(directory, ask)?;
    if known.restoring != call.question {
        return Ok(one(known).into());
    }
    Ok(Effect {
        quiet: true,
        ..put(own(directory, ask)?)
    })
}

/// A restoration failed: the record that it made goes, unless somebody else has made it theirs meanwhile.
pub(crate) fn not_restored(
    directory: &Directory,
    call: &Call,
    ask: &IamRequest,
) -> Result<Effect, Error> {
    let known = existing(directory, ask)?;
    let used = directory.users().any(|user| user.home == known.id);
    if known.restoring != call.question || used {
        return Ok(Effect::default());
    }
    Ok(Effect {
        changes: vec![Change::RemoveWorkspace(known.id.clone())],
        ..Effect::default()
    })
}

/// All workspaces, by id.
pub(super) fn list(directory: &Directory, ask: &IamRequest) -> Result<IamResponse, Error> {
    page(directory.workspaces(), ask)
}

fn page<'a>(
    sorted: impl Iterator<Item = &'a Workspace>,
    ask: &IamRequest,
) -> Result<IamResponse, Error> {
    let asked = Asked::read(&ask.operation, ask.limit, &ask.after)?;
    let page = Page::of(asked, sorted, |one| one.id.as_str(), workspace_record)?;
    Ok(IamResponse {
        workspaces: page.entries,
        next: page.next,
        ..IamResponse::default()
    })
}

/// Those the caller can work in.
pub(super) fn list_mine(directory: &Directory, ask: &IamRequest) -> Result<IamResponse, Error> {
    let user = directory.user(&ask.actor).ok_or_else(auth_failed)?;
    let granted: BTreeSet<&str> = granted(directory, user)
        .map(|(grant, _)| grant.workspace.as_str())
        .collect();
    let everywhere = user.roles.contains(ADMIN) || granted.contains("");
    let mine = |workspace: &&Workspace| {
        everywhere || workspace.id == user.home || granted.contains(workspace.id.as_str())
    };
    page(directory.workspaces().filter(mine), ask)
}

/// One workspace.
pub(super) fn get(directory: &Directory, ask: &IamRequest) -> Result<IamResponse, Error> {
    Ok(one(existing(directory, ask)?))
}

/// Changes the name; `enabled: false` disables. A workspace is enabled again by `enable-workspace` only:
/// the wire cannot tell an omitted `enabled` from a true one.
pub(super) fn update(
    directory: &Directory,
    call: &Call,
    ask: &IamRequest,
) -> Result<Effect, Error> {
    let mut new = own(directory, ask)?;
    let input = input(ask)?;
    if !input.name.is_empty() {
        new.name = optional("workspace_record.name", &input.name)?.to_owned();
    }
    if !input.enabled {
        may_close(directory, call, ask, &new.id)?;
        new.enabled = false;
    }
    Ok(put(new))
}

/// Enables a workspace: its users' keys are good again.
pub(super) fn enable(directory: &Directory, ask: &IamRequest) -> Result<Effect, Error> {
    let mut new = own(directory, ask)?;
    new.enabled = true;
    Ok(put(new))
}

/// Disables a workspace: its users' keys are refused, and kept.
pub(super) fn disable(
    directory: &Directory,
    call: &Call,
    ask: &IamRequest,
) -> Result<Effect, Error> {
    let mut new = own(directory, ask)?;
    may_close(directory, call, ask, &new.id)?;
    new.enabled = false;
    Ok(put(new))
}

/// Removes a workspace with its users and their keys.
pub(crate) fn remove(directory: &Directory, ask: &IamRequest) -> Result<Effect, Error> {
    Ok(Effect {
        changes: without(directory, existing(directory, ask)?),
        ..Effect::default()
    })
}

fn without(directory: &Directory, workspace: &Workspace) -> Vec<Change> {
    let id = &workspace.id;
    let mut changes = Vec::new();
    for user in directory.users().filter(|user| user.home == *id) {
        changes.extend(without_keys(directory, user));
        changes.push(Change::RemoveUser(user.id.clone()));
    }
    changes.push(Change::RemoveWorkspace(id.clone()));
    changes
}

/// A workspace ends in one generation, with its users and their keys. Another of the name stays.
pub(crate) fn end(directory: &Directory, key: &WorkspaceKey) -> Vec<Change> {
    match directory.workspace(key.name()) {
        Some(workspace) if workspace.key().as_ref() == Some(key) => without(directory, workspace),
        _ => Vec::new(),
    }
}

/// A workspace whose generation was not known is seen in one.
pub(crate) fn settle(directory: &Directory, key: &WorkspaceKey) -> Vec<Change> {
    match directory.workspace(key.name()) {
        Some(workspace) if workspace.generation.is_none() => {
            vec![Change::PutWorkspace(Workspace {
                generation: Some(key.generation()),
                ..workspace.clone()
            })]
        }
        _ => Vec::new(),
    }
}

/// The workspace that a request names.
pub(crate) fn existing<'a>(
    directory: &'a Directory,
    ask: &IamRequest,
) -> Result<&'a Workspace, Error> {
    let id = required("workspace_record.id", &input(ask)?.id)?;
    directory
        .workspace(id)
        .ok_or_else(|| not_found("workspace"))
}

/// The workspace that a request names, to be changed: from then on no restoration takes it back.
fn own(directory: &Directory, ask: &IamRequest) -> Result<Workspace, Error> {
    Ok(Workspace {
        restoring: String::new(),
        ..existing(directory, ask)?.clone()
    })
}

/// Whoever asks manages all who are at home in a workspace. Nobody may lock everybody out: an administrator stays who can
/// come in.
fn may_close(
    directory: &Directory,
    call: &Call,
    ask: &IamRequest,
    closing: &str,
) -> Result<(), Error> {
    let mut closes_on_admin = false;
    for user in directory.users().filter(|user| user.home == closing) {
        may_manage(directory, ask, user)?;
        let counts = directory.is_active(user) && !user.is_external();
        closes_on_admin |= user.roles.contains(ADMIN) && counts;
    }
    let stays = |user: &User| user.home != closing && directory.comes_in(user, call.now, |_| false);
    if closes_on_admin && !directory.keeps_admin(stays) {
        return Err(not_permitted(
            "this is the home of the last active administrator",
        ));
    }
    Ok(())
}

fn input(ask: &IamRequest) -> Result<&WorkspaceInput, Error> {
    ask.workspace_record
        .as_ref()
        .ok_or_else(|| invalid("workspace_record", "is required"))
}

fn one(workspace: &Workspace) -> IamResponse {
    IamResponse {
        workspace: Some(workspace_record(workspace)),
        ..IamResponse::default()
    }
}

fn put(workspace: Workspace) -> Effect {
    Effect {
        answer: one(&workspace),
        changes: vec![Change::PutWorkspace(workspace)],
        quiet: false,
    }
}
