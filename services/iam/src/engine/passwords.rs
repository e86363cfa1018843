//! Operations on passwords. What takes long was done before: the hash of a new one and the proof of an old one come with
//! the call.

use tg_schemas::msg::{IamRequest, IamResponse};
use tg_schemas::{Error, ErrorCode};

use super::authority::may_manage;
use super::check::{auth_failed, not_permitted, secret};
use super::users::{find, put};
use super::{Call, Directory, Effect, User};

/// One's own password, by the one before. All sessions end.
pub(super) fn change(
    directory: &Directory,
    call: &Call,
    ask: &IamRequest,
) -> Result<Effect, Error> {
    let user = own(directory, ask)?;
    secret("new_password", &ask.new_password)?;
    let proof = call.proof.as_ref().ok_or_else(auth_failed)?;
    let proven = proof.user_id == user.id && user.password.as_ref() == Some(&proof.against);
    if !proven {
        return Err(auth_failed());
    }
    Ok(Effect {
        answer: IamResponse::default(),
        ..put(with_password(user, call, false)?)
    })
}

/// Whose password `change-password` is about: the caller's own.
pub(crate) fn own<'a>(directory: &'a Directory, ask: &IamRequest) -> Result<&'a User, Error> {
    let id = match (ask.user_id.as_str(), ask.actor.as_str()) {
        ("", actor) => actor,
        (id, actor) if actor.is_empty() || id == actor => id,
        _ => {
            return Err(not_permitted(
                "user_id: change-password is for one's own; reset-password is for others'",
            ));
        }
    };
    let user = directory.user(id).filter(|user| directory.is_active(user));
    user.ok_or_else(auth_failed)
}

/// A password for somebody who lost theirs, told once. All sessions end.
pub(super) fn reset(directory: &Directory, call: &Call, ask: &IamRequest) -> Result<Effect, Error> {
    let user = find(directory, ask)?;
    may_manage(directory, ask, user)?;
    if user.is_external() {
        return Err(not_permitted("the user comes in by an external issuer"));
    }
    let temporary = call.fresh.temporary.as_ref().ok_or_else(unhashed)?;
    let answer = IamResponse {
        temporary_password: temporary.reveal().to_owned(),
        ..IamResponse::default()
    };
    Ok(Effect {
        answer,
        ..put(with_password(user, call, true)?)
    })
}

fn with_password(user: &User, call: &Call, must_change: bool) -> Result<User, Error> {
    Ok(User {
        password: Some(call.fresh.password.clone().ok_or_else(unhashed)?),
        must_change_password: must_change,
        session: user.session + 1,
        ..user.clone()
    })
}

fn unhashed() -> Error {
    Error::new(ErrorCode::Internal, "the password was not hashed")
}

/// The password that a request sets, looked at before anything is computed. `None` if it sets none.
pub(crate) fn to_hash(ask: &IamRequest) -> Result<Option<&str>, Error> {
    match ask.operation.as_str() {
        "create-user" => match &ask.user {
            Some(user) if !user.password.is_empty() => {
                Ok(Some(secret("user.password", &user.password)?))
            }
            _ => Ok(None),
        },
        "change-password" => Ok(Some(secret("new_password", &ask.new_password)?)),
        _ => Ok(None),
    }
}
