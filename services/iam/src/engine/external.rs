//! Who comes in by an external issuer: a user made at the first login, and kept to what the issuer says at each.

use tg_schemas::Error;
use tg_schemas::msg::IamRequest;

use super::check::{auth_failed, username};
use super::users::{has_room, without_keys};
use super::{Call, Change, Directory, Effect, User, tokens};
use crate::external::{External, PREFIX};

impl User {
    /// Whether an issuer answers for them, and not a password.
    pub(crate) fn is_external(&self) -> bool {
        self.username.starts_with(PREFIX)
    }
}

/// A token of the issuer for one of ours, which ends no later. Every reason to refuse one reads the same. Before there is an
/// administrator nobody comes in so: the first user is whoever has the code.
pub(super) fn login(
    directory: &Directory,
    call: &Call,
    ask: &IamRequest,
    who: &External,
) -> Result<Effect, Error> {
    if directory.users().len() == 0 || !directory.is_open(&who.home) {
        return Err(auth_failed());
    }
    let known = directory.user(&who.id);
    // With more to do, or elsewhere, what others made for somebody does not come along.
    let ends =
        known.is_some_and(|known| known.home != who.home || !who.roles.is_subset(&known.roles));
    let user = match known {
        Some(known) if known.username != who.username => return Err(auth_failed()),
        Some(known) => User {
            home: who.home.clone(),
            name: who.name.clone(),
            roles: who.roles.clone(),
            session: known.session + i64::from(ends),
            ..known.clone()
        },
        None => new(call, who),
    };
    if !user.enabled {
        return Err(auth_failed());
    }
    let taken = || directory.named(&who.username).is_some();
    if known.is_none() && (username("sub", &who.username).is_err() || taken()) {
        return Err(auth_failed());
    }
    if known.is_none_or(|known| known.home != who.home) {
        has_room(directory, call, &who.home)?;
    }
    let workspace = tokens::entered(directory, &user, ask)?;
    let answer = tokens::sign_until(directory, call.now, &user, workspace, who.until)?;
    // Who is new, or only has another name, is remembered by nobody.
    let quiet = known.is_none_or(|known| known.roles == user.roles && known.home == user.home);
    let keys = known.filter(|_| ends).into_iter();
    let mut changes: Vec<Change> = keys
        .flat_map(|known| without_keys(directory, known))
        .collect();
    if known != Some(&user) {
        changes.push(Change::PutUser(user));
    }
    Ok(Effect {
        changes,
        answer,
        quiet,
    })
}

fn new(call: &Call, who: &External) -> User {
    User {
        id: who.id.clone(),
        home: who.home.clone(),
        username: who.username.clone(),
        name: who.name.clone(),
        email: String::new(),
        roles: who.roles.clone(),
        enabled: true,
        must_change_password: false,
        password: None,
        // Tokens of one who had this id before, and was deleted, are of an earlier session.
        session: call.now.timestamp_millis(),
        created: call.now,
        made_by: call.question.clone(),
    }
}
