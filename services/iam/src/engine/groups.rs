//! Operations on groups and on what is granted to them and to users.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tg_schemas::msg::{GroupInput, IamRequest, IamResponse};
use tg_schemas::paging::{Asked, Page};
use tg_schemas::{Error, ErrorCode};

use super::authority::{granted, may_give, may_manage, meant, seen, sees_grants};
use super::check::{invalid, not_found, optional, required};
use super::users::find;
use super::{Call, Change, Directory, Effect, Grant, Grantee, Group, Role, RoleScope, stamp};

/// Bounds of what is held in memory.
const MAX_GROUPS: usize = 10_000;
const MAX_MEMBERS: usize = 10_000;
const MAX_GROUPS_OF_USER: usize = 100;
const MAX_GRANTS: usize = 256;

/// Makes a group.
pub(super) fn create(
    directory: &Directory,
    call: &Call,
    ask: &IamRequest,
) -> Result<Effect, Error> {
    let input = input(ask)?;
    let name = required("group.name", &input.name)?;
    let description = optional("group.description", &input.description)?;
    if let Some(known) = directory.groups().find(|group| group.name == name) {
        if !call.question.is_empty() && known.made_by == call.question {
            return Ok(one(known).into());
        }
        return Err(Error::typed("duplicate", "group.name: is taken"));
    }
    if directory.groups().len() >= MAX_GROUPS {
        return Err(too_many("groups"));
    }
    Ok(put(Group {
        id: call.fresh.user_id.clone(),
        name: name.to_owned(),
        description: description.to_owned(),
        enabled: input.enabled,
        created: call.now,
        made_by: call.question.clone(),
    }))
}

/// One group.
pub(super) fn get(directory: &Directory, ask: &IamRequest) -> Result<IamResponse, Error> {
    Ok(one(existing(directory, ask)?))
}

/// All groups, by name.
pub(super) fn list(directory: &Directory, ask: &IamRequest) -> Result<IamResponse, Error> {
    let asked = Asked::read(&ask.operation, ask.limit, &ask.after)?;
    let mut groups: Vec<&Group> = directory.groups().collect();
    groups.sort_by(|a, b| a.name.cmp(&b.name));
    let page = Page::of(asked, groups, |group| group.name.as_str(), value)?;
    Ok(IamResponse {
        groups_json: Value::from(page.entries).to_string(),
        next: page.next,
        ..IamResponse::default()
    })
}

/// Changes what is told and keeps what is not. `enabled: true` counts where it was said only.
pub(super) fn update(directory: &Directory, ask: &IamRequest) -> Result<Effect, Error> {
    let known = existing(directory, ask)?;
    let input = input(ask)?;
    may_give(directory, ask, directory.grants(&holder(known)))?;
    let mut new = known.clone();
    if !input.name.is_empty() && input.name != known.name {
        let name = required("group.name", &input.name)?;
        if directory.groups().any(|group| group.name == name) {
            return Err(Error::typed("duplicate", "group.name: is taken"));
        }
        name.clone_into(&mut new.name);
    }
    if !input.description.is_empty() {
        optional("group.description", &input.description)?.clone_into(&mut new.description);
    }
    new.enabled = input.enabled && (new.enabled || input.told.iter().any(|name| name == "enabled"));
    Ok(put(new))
}

/// Removes a group with its grants.
pub(super) fn delete(directory: &Directory, ask: &IamRequest) -> Result<Effect, Error> {
    let group = existing(directory, ask)?;
    may_give(directory, ask, directory.grants(&holder(group)))?;
    Ok(only(Change::RemoveGroup(group.id.clone())))
}

/// Adds a user, who gets what the group has.
pub(super) fn add_member(directory: &Directory, ask: &IamRequest) -> Result<Effect, Error> {
    let group = existing(directory, ask)?;
    let user = directory.user(member(ask)?);
    let user = user.ok_or_else(|| not_found("user"))?;
    seen(directory, ask, user)?;
    may_give(directory, ask, directory.grants(&holder(group)))?;
    if directory.members(&group.id).any(|id| *id == user.id) {
        return Ok(Effect::default());
    }
    if directory.members(&group.id).count() >= MAX_MEMBERS {
        return Err(too_many("members of the group"));
    }
    if directory.groups_of(&user.id).count() >= MAX_GROUPS_OF_USER {
        return Err(too_many("groups of the user"));
    }
    let change = Change::PutMember(group.id.clone(), user.id.clone());
    Ok(only(change))
}

/// Takes a user out.
pub(super) fn remove_member(directory: &Directory, ask: &IamRequest) -> Result<Effect, Error> {
    let group = existing(directory, ask)?;
    let id = member(ask)?;
    may_give(directory, ask, directory.grants(&holder(group)))?;
    if !directory.members(&group.id).any(|one| one == id) {
        return Err(not_found("member"));
    }
    Ok(only(Change::RemoveMember(group.id.clone(), id.to_owned())))
}

/// The users in a group, by id.
pub(super) fn list_members(directory: &Directory, ask: &IamRequest) -> Result<IamResponse, Error> {
    let asked = Asked::read(&ask.operation, ask.limit, &ask.after)?;
    let group = existing(directory, ask)?;
    let shown = |id: &String| {
        let user = directory.user(id);
        json!({"member_type": "user", "member_id": id,
            "username": user.map_or("", |user| user.username.as_str())})
    };
    let page = Page::of(asked, directory.members(&group.id), |id| id.as_str(), shown)?;
    Ok(IamResponse {
        members_json: Value::from(page.entries).to_string(),
        next: page.next,
        ..IamResponse::default()
    })
}

/// Grants something to a group or user; granted already, it stays.
pub(super) fn add_grant(directory: &Directory, ask: &IamRequest) -> Result<Effect, Error> {
    let (holder, grant) = (of(directory, ask)?, grant(ask)?);
    // In this order nobody learns which workspaces of others exist.
    may_give(directory, ask, [&grant])?;
    if !grant.workspace.is_empty() && directory.workspace(&grant.workspace).is_none() {
        return Err(not_found("grant.workspace: workspace"));
    }
    if directory.grants(&holder).any(|known| *known == grant) {
        return Ok(Effect::default());
    }
    if directory.grants(&holder).count() >= MAX_GRANTS {
        return Err(too_many("grants"));
    }
    Ok(only(Change::PutGrant(holder, grant)))
}

/// Takes something back.
pub(super) fn remove_grant(directory: &Directory, ask: &IamRequest) -> Result<Effect, Error> {
    let (holder, grant) = (of(directory, ask)?, grant(ask)?);
    may_give(directory, ask, [&grant])?;
    if !directory.grants(&holder).any(|known| *known == grant) {
        return Err(not_found("grant"));
    }
    Ok(only(Change::RemoveGrant(holder, grant)))
}

/// What was granted to a group or user themselves, by name and workspace, in the workspaces whose grants the asker manages.
pub(super) fn list_grants(directory: &Directory, ask: &IamRequest) -> Result<IamResponse, Error> {
    let asked = Asked::read(&ask.operation, ask.limit, &ask.after)?;
    let grants = directory.grants(&of(directory, ask)?);
    let grants = grants.filter(|one| sees_grants(directory, ask, &one.workspace));
    // Neither has a line break: keys are in the order of the grants.
    let key = |one: &&Grant| format!("{}\n{}", one.capability, one.workspace);
    let shown = |one: &Grant| json!({"capability": one.capability, "workspace": one.workspace});
    let page = Page::of(asked, grants, key, shown)?;
    Ok(IamResponse {
        grants_json: Value::from(page.entries).to_string(),
        next: page.next,
        ..IamResponse::default()
    })
}

/// All that a user may do, and what each of it comes from; by workspace, then by name. Only what is on the page is worked
/// out one by one: what a user has may be a million rows.
pub(super) fn effective(directory: &Directory, ask: &IamRequest) -> Result<IamResponse, Error> {
    let asked = Asked::read(&ask.operation, ask.limit, &ask.after)?;
    let user = find(directory, ask)?;
    let mut given: BTreeMap<&str, Vec<(&str, String)>> = BTreeMap::new();
    if directory.is_active(user) {
        for role in user.roles.iter().filter_map(|name| Role::find(name)) {
            let workspace = match role.scope {
                RoleScope::All => "",
                RoleScope::Home => user.home.as_str(),
            };
            let one = (role.name, format!("role:{}", role.name));
            given.entry(workspace).or_default().push(one);
        }
        for (grant, group) in granted(directory, user) {
            let source = group.map_or_else(|| "user".to_owned(), |one| format!("group:{}", one.id));
            let one = (grant.capability.as_str(), source);
            given.entry(&grant.workspace).or_default().push(one);
        }
    }
    let seen = asked.after().and_then(|key| key.split_once('\n'));
    let seen = seen.map(|(workspace, _)| workspace.to_owned());
    let left = given
        .into_iter()
        .filter(|(workspace, _)| seen.as_deref().is_none_or(|seen| *workspace >= seen));
    let rows = left.flat_map(|(workspace, given)| {
        let of_one = capabilities(given).into_iter();
        of_one.map(move |(capability, sources)| (workspace, capability, sources))
    });
    // Neither has a line break, which is before all that names have.
    let key = |(workspace, capability, _): &(&str, &str, Vec<String>)| {
        format!("{workspace}\n{capability}")
    };
    let shown = |(workspace, capability, sources)| json!({"capability": capability, "workspace": workspace, "sources": sources});
    let page = Page::of(asked, rows, key, shown)?;
    let all = json!({"user_id": user.id, "permissions": page.entries});
    Ok(IamResponse {
        effective_permissions_json: all.to_string(),
        next: page.next,
        ..IamResponse::default()
    })
}

/// What names stand for, and by which of them.
fn capabilities(given: Vec<(&str, String)>) -> BTreeMap<&'static str, Vec<String>> {
    let mut found: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for (name, source) in given {
        for capability in meant(name) {
            let sources = found.entry(capability).or_default();
            if !sources.contains(&source) {
                sources.push(source.clone());
            }
        }
    }
    found
}

/// Whose grants a request is about.
fn of(directory: &Directory, ask: &IamRequest) -> Result<Grantee, Error> {
    if ask.operation.contains("group") {
        return Ok(holder(existing(directory, ask)?));
    }
    let user = find(directory, ask)?;
    if ask.operation != "list-user-grants" {
        may_manage(directory, ask, user)?;
    }
    Ok(Grantee::User(user.id.clone()))
}

fn holder(group: &Group) -> Grantee {
    Grantee::Group(group.id.clone())
}

fn grant(ask: &IamRequest) -> Result<Grant, Error> {
    let input = ask.grant.as_ref();
    let input = input.ok_or_else(|| invalid("grant", "is required"))?;
    let capability = required("grant.capability", &input.capability)?;
    if meant(capability).is_empty() {
        return Err(invalid(
            "grant.capability",
            "is not the name of a capability or role",
        ));
    }
    Ok(Grant {
        capability: capability.to_owned(),
        workspace: optional("grant.workspace", &input.workspace)?.to_owned(),
    })
}

fn member(ask: &IamRequest) -> Result<&str, Error> {
    if !matches!(ask.member_type.as_str(), "" | "user") {
        return Err(invalid("member_type", "must be 'user': groups hold users"));
    }
    required("member_id", &ask.member_id)
}

fn existing<'a>(directory: &'a Directory, ask: &IamRequest) -> Result<&'a Group, Error> {
    let id = required("group_id", &ask.group_id)?;
    directory.group(id).ok_or_else(|| not_found("group"))
}

fn input(ask: &IamRequest) -> Result<&GroupInput, Error> {
    ask.group
        .as_ref()
        .ok_or_else(|| invalid("group", "is required"))
}

fn too_many(what: &str) -> Error {
    Error::new(ErrorCode::TooLarge, format!("there are too many {what}"))
}

fn value(group: &Group) -> Value {
    json!({
        "id": group.id,
        "name": group.name,
        "description": group.description,
        "enabled": group.enabled,
        "created": stamp(group.created),
    })
}

fn one(group: &Group) -> IamResponse {
    IamResponse {
        group_json: value(group).to_string(),
        ..IamResponse::default()
    }
}

fn put(group: Group) -> Effect {
    Effect {
        answer: one(&group),
        ..only(Change::PutGroup(group))
    }
}

fn only(change: Change) -> Effect {
    Effect {
        changes: vec![change],
        ..Effect::default()
    }
}
