//! Operations on API keys, and whose key it is.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use tg_schemas::msg::{IamRequest, IamResponse};
use tg_schemas::paging::{Asked, Page};
use tg_schemas::roles::{ROLE, TOOL};
use tg_schemas::{Error, ErrorCode};

use super::authority::{may_manage, meant, seen};
use super::check::{auth_failed, expiry, invalid, not_found, not_permitted, required};
use super::users::{find, in_workspace};
use super::{ADMIN, Call, Change, DECISION_TTL, Directory, Effect, Key, Role, User, key_record};
use crate::secret::ApiKey;

/// Most keys of one user.
const MAX_KEYS: usize = 64;

/// For so long a client that asks again under the name of its request has the key in place of the one before.
const RETRY_WINDOW: TimeDelta = TimeDelta::days(1);

/// Makes a key and shows it, once. The same question asked again replaces the key that nobody has seen; so does the same request
/// of a client that gives it a name, as that is what it does when it had no answer.
pub(super) fn create(
    directory: &Directory,
    call: &Call,
    ask: &IamRequest,
) -> Result<Effect, Error> {
    let input = ask
        .key
        .as_ref()
        .ok_or_else(|| invalid("key", "is required"))?;
    let user_id = required("key.user_id", &input.user_id)?;
    let name = required("key.name", &input.name)?;
    let expires = expiry("key.expires", &input.expires, call.now)?;
    let scopes = scopes("key.scopes", &input.scopes)?;
    let user = in_workspace(directory, user_id, &ask.workspace)?;
    seen(directory, ask, user)?;
    may_manage(directory, ask, user)?;
    if !user.enabled {
        return Err(not_permitted("the user is disabled"));
    }
    let made_by = match &call.named {
        Some(request) => format!("{} {request} {name}", ask.actor),
        None => call.question.clone(),
    };
    let is_same = |key: &&Key| {
        let soon = call.named.is_none() || call.now - key.created < RETRY_WINDOW;
        !made_by.is_empty() && key.made_by == made_by && soon
    };
    let mut changes: Vec<Change> = directory
        .keys_of(user_id)
        .filter(is_same)
        .map(|key| Change::RemoveKey(key.id.clone()))
        .collect();
    if directory.keys_of(user_id).count() >= MAX_KEYS + changes.len() {
        return Err(Error::new(
            ErrorCode::TooLarge,
            format!("the user has {MAX_KEYS} keys already; revoke one first"),
        ));
    }
    let key = Key {
        id: call.fresh.key_id.clone(),
        user_id: user_id.to_owned(),
        name: name.to_owned(),
        prefix: call.fresh.key.prefix(),
        hash: call.fresh.key.hash(),
        expires,
        scopes,
        created: call.now,
        made_by: made_by.clone(),
    };
    let answer = IamResponse {
        api_key_plaintext: call.fresh.key.reveal().to_owned(),
        api_key: Some(key_record(&key)),
        ..IamResponse::default()
    };
    changes.push(Change::PutKey(key));
    Ok(Effect {
        changes,
        answer,
        quiet: false,
    })
}

/// By these, a key that may do little could make itself one that may do everything.
const NO_SCOPES: [&str; 6] = [
    "users:write",
    "users:admin",
    "keys:admin",
    "workspaces:admin",
    "iam:admin",
    "mint-token",
];

/// Before the name of a model that a key is held to.
const MODEL: &str = "model:";
/// Most characters of such a name, and of a tool's.
const LONGEST: usize = 128;

/// Whether a scope names a model, a tool that agents use for the key without asking, or a role that counts for the key.
fn names_another(scope: &str) -> bool {
    let is_named = |name: &str, strange: fn(char) -> bool| {
        !name.chars().any(strange) && (1..=LONGEST).contains(&name.chars().count())
    };
    let model = |name| is_named(name, |c| c.is_control() || c.is_whitespace());
    scope.strip_prefix(MODEL).is_some_and(model)
        || scope
            .strip_prefix(TOOL)
            .is_some_and(|name| is_named(name, char::is_control) && name.trim() == name)
        || scope
            .strip_prefix(ROLE)
            .is_some_and(|name| Role::find(name).is_some())
}

/// The only capabilities that a key is to have, the only models that it may ask for, and what else its agents may.
fn scopes(field: &str, names: &[String]) -> Result<BTreeSet<String>, Error> {
    for name in names {
        if names_another(name) {
            continue;
        }
        if !meant(name).contains(&name.as_str()) {
            return Err(invalid(field, "holds a name that is not a capability"));
        }
        if NO_SCOPES.contains(&name.as_str()) {
            return Err(invalid(
                field,
                &format!("{name} is not for keys that may not do everything"),
            ));
        }
    }
    Ok(names.iter().cloned().collect())
}

/// A user's keys, oldest first.
pub(super) fn list(directory: &Directory, ask: &IamRequest) -> Result<IamResponse, Error> {
    let asked = Asked::read(&ask.operation, ask.limit, &ask.after)?;
    let user = find(directory, ask)?;
    let keys = directory.keys_of(&user.id).map(|key| (age(key), key));
    let mut keys: Vec<(String, &Key)> = keys.collect();
    keys.sort_by(|a, b| a.0.cmp(&b.0));
    let page = Page::of(asked, keys, |one| one.0.clone(), |one| key_record(one.1))?;
    Ok(IamResponse {
        api_keys: page.entries,
        next: page.next,
        ..IamResponse::default()
    })
}

/// Orders keys as text, the oldest first.
fn age(key: &Key) -> String {
    let created = key.created.format("%Y-%m-%dT%H:%M:%S%.9f");
    format!("{created} {}", key.id)
}

/// Removes a key. The last way in of the last administrator stays.
pub(super) fn revoke(
    directory: &Directory,
    call: &Call,
    ask: &IamRequest,
) -> Result<Effect, Error> {
    let id = required("key_id", &ask.key_id)?;
    let key = directory.key(id).ok_or_else(|| not_found("api key"))?;
    let user = in_workspace(directory, &key.user_id, &ask.workspace);
    let user = user.and_then(|user| seen(directory, ask, user).map(|()| user));
    let user = user.map_err(|_| not_found("api key"))?;
    may_manage(directory, ask, user)?;
    let stays = |one: &User| directory.comes_in(one, call.now, |key| key.id == id);
    if user.roles.contains(ADMIN)
        && directory.comes_in(user, call.now, |_| false)
        && !directory.keeps_admin(stays)
    {
        let text = "this is the last key of the last administrator, who has no password";
        return Err(not_permitted(text));
    }
    Ok(Effect {
        changes: vec![Change::RemoveKey(id.to_owned())],
        ..Effect::default()
    })
}

/// Whose key it is. Every reason to refuse one reads the same.
pub(super) fn resolve(
    directory: &Directory,
    now: DateTime<Utc>,
    ask: &IamRequest,
) -> Result<IamResponse, Error> {
    let key = ApiKey::presented(&ask.api_key)
        .and_then(|presented| directory.key_by_hash(&presented.hash()))
        .filter(|key| key.expires.is_none_or(|end| now < end))
        .ok_or_else(auth_failed)?;
    let user = directory
        .user(&key.user_id)
        .filter(|user| directory.is_active(user))
        .ok_or_else(auth_failed)?;
    // As long as this holds, in seconds begun: who remembers it longer lets an expired key in.
    let left = key.expires.map(|end| (end - now).num_seconds() + 1);
    Ok(IamResponse {
        decision_ttl_seconds: left.map_or(DECISION_TTL, |left| left.clamp(1, DECISION_TTL)),
        resolved_user_id: user.id.clone(),
        resolved_default_workspace: user.home.clone(),
        resolved_roles: user.roles.iter().cloned().collect(),
        resolved_scopes: key.scopes.iter().cloned().collect(),
        resolved_key_id: key.id.clone(),
        ..IamResponse::default()
    })
}
