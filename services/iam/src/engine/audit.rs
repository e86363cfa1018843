//! What is written down of an operation: of each change what it was and what it is, of a refusal why. Nothing of it is
//! secret, nor what somebody may have taken a field for: names that nobody has are left out, as people type passwords there.

use serde_json::{Map, Value, json};
use tg_clients::audit::{CHANGE, LOGIN, REFUSED, STRANGER};
use tg_schemas::Error;
use tg_schemas::msg::{AuditEntry, IamRequest};

use super::authority::{allows, everywhere};
use super::{Change, Directory, Grant, Group, Key, Signing, User, Workspace, stamp};

/// Most changes of one operation that are told one by one; the others are counted.
const TOLD: usize = 100;

/// Whether an operation does something: that it was refused is written down, too.
pub(crate) fn acts(operation: &str) -> bool {
    let reads = [
        "list-",
        "get-",
        "whoami",
        "resolve-",
        "authorise",
        "authenticate-",
        "bootstrap-status",
    ];
    !reads.iter().any(|word| operation.starts_with(word))
}

/// What takes to see what happened.
const CAPABILITY: &str = "audit:read";

/// Whether a user sees what happens in a workspace.
pub(crate) fn sees(directory: &Directory, actor: &str, workspace: &str) -> bool {
    allows(directory, actor, CAPABILITY, Some(workspace))
}

/// Whether a user sees everything that happens.
pub(crate) fn sees_all(directory: &Directory, actor: &str) -> bool {
    let user = directory.user(actor);
    user.is_some_and(|user| directory.is_active(user) && everywhere(directory, user, CAPABILITY))
}

/// The changes that an operation makes in a directory, as it was before.
pub(crate) fn told(directory: &Directory, changes: &[Change], ask: &IamRequest) -> Vec<AuditEntry> {
    let mut all: Vec<AuditEntry> = Vec::new();
    let mut more = 0;
    for change in changes {
        let Some(told) = one(directory, changes, change) else {
            continue;
        };
        if all.len() < TOLD {
            all.push(AuditEntry {
                target_kind: told.kind.to_owned(),
                target: told.id,
                workspace: told.workspace,
                changes: told.changes,
                ..begun(ask, CHANGE)
            });
        } else {
            more += 1;
        }
    }
    if more > 0 {
        all.push(AuditEntry {
            target_kind: "more".to_owned(),
            count: more,
            ..begun(ask, CHANGE)
        });
    }
    all
}

/// That somebody got a token: their own by a password, or one for a user.
pub(crate) fn came_in(directory: &Directory, user_id: &str, ask: &IamRequest) -> AuditEntry {
    let entry = begun(ask, LOGIN);
    AuditEntry {
        actor: match entry.actor.is_empty() {
            true => user_id.to_owned(),
            false => entry.actor,
        },
        target_kind: "user".to_owned(),
        target: user_id.to_owned(),
        workspace: home(directory, &[], user_id),
        ..entry
    }
}

/// That an operation was refused.
pub(crate) fn refused(directory: &Directory, ask: &IamRequest, error: &Error) -> AuditEntry {
    let kind = match ask.actor.is_empty() {
        true => STRANGER,
        false => REFUSED,
    };
    let (target_kind, target, workspace) = about(directory, ask);
    AuditEntry {
        target_kind: target_kind.to_owned(),
        target,
        workspace,
        reason: error.code().as_str().to_owned(),
        ..begun(ask, kind)
    }
}

/// Who did what, by which request.
fn begun(ask: &IamRequest, kind: &str) -> AuditEntry {
    AuditEntry {
        kind: kind.to_owned(),
        count: 1,
        actor: ask.actor.clone(),
        credential: ask.credential.clone(),
        address: ask.address.clone(),
        operation: format!("iam/{}", ask.operation),
        request_id: ask.request_id.clone(),
        ..AuditEntry::default()
    }
}

/// What a request is about, of what there is: kind, id and workspace.
fn about(directory: &Directory, ask: &IamRequest) -> (&'static str, String, String) {
    let user = directory
        .user(&ask.user_id)
        .or_else(|| directory.named(&ask.username));
    if let Some(user) = user {
        return ("user", user.id.clone(), user.home.clone());
    }
    if let Some(key) = directory.key(&ask.key_id) {
        return ("key", key.id.clone(), home(directory, &[], &key.user_id));
    }
    if let Some(group) = directory.group(&ask.group_id) {
        return ("group", group.id.clone(), String::new());
    }
    let record = ask.workspace_record.as_ref();
    if let Some(known) = record.and_then(|one| directory.workspace(&one.id)) {
        return ("workspace", known.id.clone(), known.id.clone());
    }
    let named = directory.workspace(&ask.workspace);
    (
        "",
        String::new(),
        named.map_or_else(String::new, |one| one.id.clone()),
    )
}

/// A change as it is told.
struct Told {
    kind: &'static str,
    id: String,
    workspace: String,
    changes: Map<String, Value>,
}

/// One change; `None` if nobody could see that something changed.
fn one(directory: &Directory, changes: &[Change], change: &Change) -> Option<Told> {
    let (kind, id, workspace, before, after) = match change {
        Change::PutWorkspace(new) => {
            let old = directory.workspace(&new.id).map(of_workspace);
            let id = new.id.clone();
            ("workspace", id.clone(), id, old, Some(of_workspace(new)))
        }
        Change::RemoveWorkspace(id) => {
            let old = directory.workspace(id).map(of_workspace);
            ("workspace", id.clone(), id.clone(), old, None)
        }
        Change::PutUser(new) => {
            let old = directory.user(&new.id);
            let after = of_user(new, old);
            let before = old.map(|old| of_user(old, Some(old)));
            (
                "user",
                new.id.clone(),
                new.home.clone(),
                before,
                Some(after),
            )
        }
        Change::RemoveUser(id) => {
            let old = directory.user(id)?;
            let before = Some(of_user(old, Some(old)));
            ("user", id.clone(), old.home.clone(), before, None)
        }
        Change::PutKey(new) => {
            let at = home(directory, changes, &new.user_id);
            ("key", new.id.clone(), at, None, Some(of_key(new)))
        }
        Change::RemoveKey(id) => {
            let old = directory.key(id)?;
            let at = home(directory, changes, &old.user_id);
            ("key", id.clone(), at, Some(of_key(old)), None)
        }
        access => return of_access(directory, changes, access),
    };
    told_of(kind, id, workspace, before, after)
}

/// The same of signing keys, groups and grants.
fn of_access(directory: &Directory, changes: &[Change], change: &Change) -> Option<Told> {
    let nowhere = String::new();
    match change {
        Change::PutSigning(new) => {
            let id = new.key.public().kid();
            let old = directory.signing().find(|one| one.key.public().kid() == id);
            let (before, after) = (old.map(of_signing), Some(of_signing(new)));
            told_of("signing-key", id, nowhere, before, after)
        }
        Change::RemoveSigning(id) => {
            let mut all = directory.signing();
            let old = all.find(|one| one.key.public().kid() == *id);
            told_of(
                "signing-key",
                id.clone(),
                nowhere,
                old.map(of_signing),
                None,
            )
        }
        Change::PutGroup(new) => {
            let old = directory.group(&new.id).map(of_group);
            told_of("group", new.id.clone(), nowhere, old, Some(of_group(new)))
        }
        Change::RemoveGroup(id) => {
            let old = directory.group(id).map(of_group);
            told_of("group", id.clone(), nowhere, old, None)
        }
        Change::PutMember(group, user) => {
            let at = home(directory, changes, user);
            told_of("group", group.clone(), at, None, Some(of_member(user)))
        }
        Change::RemoveMember(group, user) => {
            let at = home(directory, changes, user);
            told_of("group", group.clone(), at, Some(of_member(user)), None)
        }
        Change::PutGrant(holder, grant) => {
            let at = grant.workspace.clone();
            told_of(
                holder.kind(),
                holder.id().to_owned(),
                at,
                None,
                Some(of_grant(grant)),
            )
        }
        Change::RemoveGrant(holder, grant) => {
            let at = grant.workspace.clone();
            told_of(
                holder.kind(),
                holder.id().to_owned(),
                at,
                Some(of_grant(grant)),
                None,
            )
        }
        // The others are told where all changes are.
        _ => None,
    }
}

fn told_of(
    kind: &'static str,
    id: String,
    workspace: String,
    before: Option<Value>,
    after: Option<Value>,
) -> Option<Told> {
    let changes = differing(before, after);
    (!changes.is_empty()).then_some(Told {
        kind,
        id,
        workspace,
        changes,
    })
}

/// Of each field that is not what it was: what it was and what it is.
fn differing(before: Option<Value>, after: Option<Value>) -> Map<String, Value> {
    let fields = |value: Option<Value>| match value {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let (before, mut after) = (fields(before), fields(after));
    let mut changes = Map::new();
    for (name, was) in before {
        match after.remove(&name) {
            Some(is) if is == was => {}
            Some(is) => {
                changes.insert(name, json!({"before": was, "after": is}));
            }
            None => {
                changes.insert(name, json!({"before": was}));
            }
        }
    }
    changes.extend(
        after
            .into_iter()
            .map(|(name, is)| (name, json!({"after": is}))),
    );
    changes
}

/// Home workspace of a user who is there, or is being made.
fn home(directory: &Directory, changes: &[Change], user_id: &str) -> String {
    let made = changes.iter().find_map(|change| match change {
        Change::PutUser(user) if user.id == user_id => Some(user),
        _ => None,
    });
    let user = directory.user(user_id).or(made);
    user.map_or_else(String::new, |user| user.home.clone())
}

fn of_workspace(one: &Workspace) -> Value {
    json!({"name": one.name, "enabled": one.enabled})
}

/// Of the password only whether there is one, and whether it is another.
fn of_user(one: &User, before: Option<&User>) -> Value {
    let password = match (&one.password, before.map(|before| &before.password)) {
        (None, _) => "none",
        (new, Some(old)) if new == old => "set",
        _ => "new",
    };
    json!({
        "username": one.username,
        "name": one.name,
        "email": one.email,
        "roles": one.roles,
        "enabled": one.enabled,
        "must_change_password": one.must_change_password,
        "password": password,
    })
}

/// Not by its first characters either.
fn of_key(one: &Key) -> Value {
    json!({
        "user": one.user_id,
        "name": one.name,
        "expires": one.expires.map(stamp),
        "scopes": one.scopes,
    })
}

fn of_signing(one: &Signing) -> Value {
    json!({"signs": one.retired.is_none()})
}

fn of_group(one: &Group) -> Value {
    json!({"name": one.name, "description": one.description, "enabled": one.enabled})
}

fn of_member(user: &str) -> Value {
    json!({"member": user})
}

fn of_grant(grant: &Grant) -> Value {
    json!({"grant": {"capability": grant.capability, "workspace": grant.workspace}})
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use chrono::DateTime;

    use super::*;
    use crate::password::PasswordHash;

    fn user(roles: &[&str], password: Option<&str>) -> User {
        User {
            id: "u".into(),
            home: "acme".into(),
            username: "ada".into(),
            name: String::new(),
            email: String::new(),
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            enabled: true,
            must_change_password: false,
            password: password.and_then(|hash| PasswordHash::stored(hash.into())),
            session: 0,
            created: DateTime::UNIX_EPOCH,
            made_by: "q".into(),
        }
    }

    fn ask(operation: &str) -> IamRequest {
        IamRequest {
            operation: operation.into(),
            actor: "boss".into(),
            credential: "key:k".into(),
            password: "hunter2".into(),
            new_password: "hunter3".into(),
            api_key: "tg_hunter4".into(),
            username: "hunter5".into(),
            user_id: "hunter6".into(),
            request_id: "r".into(),
            ..IamRequest::default()
        }
    }

    #[test]
    fn a_change_says_what_was_and_what_is_and_nothing_secret() {
        let mut directory = Directory::default();
        directory.apply(&Change::PutUser(user(&["reader"], Some("hash1"))));
        let new = [Change::PutUser(user(&["writer"], Some("hash2")))];
        let told = told(&directory, &new, &ask("update-user"));
        assert_eq!(told.len(), 1);
        let one = &told[0];
        assert_eq!(
            (
                one.kind.as_str(),
                one.actor.as_str(),
                one.credential.as_str()
            ),
            (CHANGE, "boss", "key:k")
        );
        assert_eq!(
            (
                one.target_kind.as_str(),
                one.target.as_str(),
                one.workspace.as_str()
            ),
            ("user", "u", "acme")
        );
        assert_eq!(
            Value::Object(one.changes.clone()),
            json!({"roles": {"before": ["reader"], "after": ["writer"]},
                   "password": {"before": "set", "after": "new"}})
        );
        let text = format!("{told:?}");
        assert!(!text.contains("hunter") && !text.contains("hash"), "{text}");
    }

    #[test]
    fn what_nobody_sees_is_not_told_and_what_is_too_much_is_counted() {
        let mut directory = Directory::default();
        let workspace = Workspace {
            id: "acme".into(),
            name: "Acme".into(),
            enabled: true,
            created: DateTime::UNIX_EPOCH,
            restoring: "q".into(),
            generation: None,
        };
        directory.apply(&Change::PutWorkspace(workspace.clone()));
        let settled = Change::PutWorkspace(Workspace {
            generation: Some(3),
            restoring: String::new(),
            ..workspace
        });
        assert!(told(&directory, &[settled], &ask("restore-workspace")).is_empty());
        let key = |at: usize| Key {
            id: format!("k{at}"),
            user_id: "u".into(),
            name: "laptop".into(),
            prefix: "tg_abcd".into(),
            hash: "hash".into(),
            expires: None,
            scopes: BTreeSet::new(),
            created: DateTime::UNIX_EPOCH,
            made_by: "q".into(),
        };
        let keys: Vec<Change> = (0..TOLD + 7).map(|at| Change::PutKey(key(at))).collect();
        let told = told(&directory, &keys, &ask("create-api-key"));
        assert_eq!(told.len(), TOLD + 1);
        assert_eq!(told[TOLD].count, 7);
        assert!(!format!("{told:?}").contains("tg_abcd"));
    }

    #[test]
    fn a_refusal_names_what_is_there_only() {
        let mut directory = Directory::default();
        directory.apply(&Change::PutUser(user(&[], None)));
        let error = Error::typed("operation-not-permitted", "hunter7");
        let one = refused(&directory, &ask("disable-user"), &error);
        assert_eq!((one.kind.as_str(), one.target.as_str()), (REFUSED, ""));
        assert!(!format!("{one:?}").contains("hunter"), "{one:?}");
        let mut login = ask("login");
        (login.actor, login.username) = (String::new(), "ada".into());
        let one = refused(&directory, &login, &Error::typed("auth-failed", ""));
        assert_eq!(
            (
                one.kind.as_str(),
                one.target.as_str(),
                one.workspace.as_str()
            ),
            (STRANGER, "u", "acme")
        );
        assert_eq!(one.reason, "auth-required");
    }
}
