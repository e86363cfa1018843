//! Tokens: by password, on behalf of a user, and whose one is.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Map, Value};
use tg_jwt::{Claims, PublicKeys};
use tg_schemas::msg::{IamRequest, IamResponse, UserContext};
use tg_schemas::{Error, ErrorCode};

use super::authority::{enters, may_manage, may_mint, seen};
use super::check::{auth_failed, invalid, not_found, not_permitted, required};
use super::users::in_workspace;
use super::{Call, Change, DECISION_TTL, Directory, Effect, Signing, User, stamp};

/// Most signing keys at once: the one that signs, and those whose tokens have not ended.
const MAX_KEYS: usize = 16;
/// Largest `user_context_json` in bytes.
const MAX_CONTEXT: usize = 4096;

/// A password for a token. Every reason to refuse one reads the same.
pub(super) fn login(
    directory: &Directory,
    call: &Call,
    ask: &IamRequest,
) -> Result<IamResponse, Error> {
    let proof = call.proof.as_ref().ok_or_else(auth_failed)?;
    let proven =
        |user: &&User| user.id == proof.user_id && user.password.as_ref() == Some(&proof.against);
    let user = directory
        .user(&proof.user_id)
        .filter(|user| directory.is_active(user))
        .filter(proven)
        .ok_or_else(auth_failed)?;
    let workspace = entered(directory, user, ask)?;
    sign(directory, call.now, user, workspace, None)
}

/// The workspace that a login is for. One in which the user may do nothing reads as one that is not there: else a login would
/// tell which workspaces others have.
pub(super) fn entered<'a>(
    directory: &Directory,
    user: &'a User,
    ask: &'a IamRequest,
) -> Result<&'a str, Error> {
    match ask.workspace.as_str() {
        "" => Ok(&user.home),
        other if enters(directory, user, other) => Ok(other),
        _ => Err(auth_failed()),
    }
}

/// A token for a user, with what policies are to know of them.
pub(super) fn mint(
    directory: &Directory,
    call: &Call,
    ask: &IamRequest,
) -> Result<IamResponse, Error> {
    let user = match (ask.user_id.as_str(), ask.username.as_str()) {
        ("", "") => directory
            .user(&ask.actor)
            .ok_or_else(|| not_found("user"))?,
        (id, "") => in_workspace(directory, id, "")?,
        ("", name) => directory.named(name).ok_or_else(|| not_found("user"))?,
        _ => return Err(invalid("user_id", "and username exclude one another")),
    };
    if user.id != ask.actor {
        seen(directory, ask, user)?;
        may_manage(directory, ask, user)?;
    }
    may_mint(directory, ask, user)?;
    if !directory.is_active(user) {
        return Err(not_permitted("the user is disabled"));
    }
    let workspace = match ask.workspace.as_str() {
        "" => &user.home,
        other if enters(directory, user, other) || is_seen(directory, ask, other) => other,
        _ => return Err(not_found("workspace")),
    };
    let context = context(&ask.user_context_json)?;
    sign(directory, call.now, user, workspace, context)
}

/// Whether a workspace is there for whoever asks. Whoever asks from inside the system sees all.
fn is_seen(directory: &Directory, ask: &IamRequest, workspace: &str) -> bool {
    match ask.actor.as_str() {
        "" => directory.is_open(workspace),
        id => directory
            .user(id)
            .is_some_and(|actor| enters(directory, actor, workspace)),
    }
}

fn context(text: &str) -> Result<Option<Map<String, Value>>, Error> {
    const FIELD: &str = "user_context_json";
    if text.is_empty() {
        return Ok(None);
    }
    if text.len() > MAX_CONTEXT {
        return Err(invalid(FIELD, "is longer than 4096 bytes"));
    }
    let context: Map<String, Value> = serde_json::from_slice(text.as_bytes())
        .map_err(|_| invalid(FIELD, "is not a JSON object"))?;
    // Every question would fail by it.
    UserContext::deserialize(&context)
        .map_err(|_| invalid(FIELD, "has a field of another type than policies have"))?;
    Ok(Some(context))
}

fn sign(
    directory: &Directory,
    now: DateTime<Utc>,
    user: &User,
    workspace: &str,
    user_context: Option<Map<String, Value>>,
) -> Result<IamResponse, Error> {
    let claims = Claims {
        user_context,
        ..Claims::new(&user.id, workspace, user.session, now.timestamp())
    };
    signed(directory, &claims)
}

/// A token that ends no later than something else does.
pub(super) fn sign_until(
    directory: &Directory,
    now: DateTime<Utc>,
    user: &User,
    workspace: &str,
    until: i64,
) -> Result<IamResponse, Error> {
    let mut claims = Claims::new(&user.id, workspace, user.session, now.timestamp());
    claims.exp = claims.exp.min(until);
    signed(directory, &claims)
}

fn signed(directory: &Directory, claims: &Claims) -> Result<IamResponse, Error> {
    let fault = || Error::new(ErrorCode::Internal, "a token could not be signed");
    let signing = directory.signing().find(|one| one.retired.is_none());
    let key = &signing.ok_or_else(fault)?.key;
    let end = DateTime::from_timestamp(claims.exp, 0).ok_or_else(fault)?;
    Ok(IamResponse {
        jwt: key.sign(claims).map_err(|_| fault())?,
        jwt_expires: stamp(end),
        ..IamResponse::default()
    })
}

/// Another key signs from now on. Those before verify until their last token has ended.
pub(super) fn rotate(directory: &Directory, call: &Call) -> Result<Effect, Error> {
    let (kept, ended): (Vec<_>, Vec<_>) = directory.signing().partition(|one| one.counts(call.now));
    if kept.len() >= MAX_KEYS {
        return Err(Error::typed(
            "too-many-requests",
            "the signing key was changed too often within the hour; try again later",
        ));
    }
    let retire = |one: &Signing| {
        Change::PutSigning(Signing {
            retired: Some(call.now),
            ..one.clone()
        })
    };
    let in_use = kept.into_iter().filter(|one| one.retired.is_none());
    let mut changes: Vec<Change> = in_use.map(retire).collect();
    let gone = |one: &Signing| Change::RemoveSigning(one.key.public().kid());
    changes.extend(ended.into_iter().map(gone));
    let (put, answer) = fresh(call)?;
    changes.push(put);
    Ok(Effect {
        changes,
        answer,
        quiet: false,
    })
}

/// The key that signs from now on.
fn fresh(call: &Call) -> Result<(Change, IamResponse), Error> {
    let fault = || Error::new(ErrorCode::Internal, "a signing key could not be made");
    let key = call.fresh.signing.clone().ok_or_else(fault)?;
    let answer = IamResponse {
        signing_key_public: key.public().to_pem(),
        ..IamResponse::default()
    };
    let put = Change::PutSigning(Signing {
        key,
        created: call.now,
        retired: None,
    });
    Ok((put, answer))
}

/// What stands for every signing key.
const EVERY: &str = "*";

/// What a key signed is refused from now on, whenever it was signed: of one key, or of all that there are, which is said by name.
/// Another signs where the one that signs is among them. One that is revoked already, or has ended, is none: of one key, asked
/// again, nothing changes.
pub(super) fn revoke(
    directory: &Directory,
    call: &Call,
    ask: &IamRequest,
) -> Result<Effect, Error> {
    let id = required("key_id", &ask.key_id)?;
    let named = |one: &&Signing| id == EVERY || one.key.public().kid() == id;
    let revoked: Vec<&Signing> = directory.signing().filter(named).collect();
    if revoked.is_empty() {
        return Err(not_found("signing key"));
    }
    let gone = |one: &&Signing| Change::RemoveSigning(one.key.public().kid());
    let mut changes: Vec<Change> = revoked.iter().map(gone).collect();
    let mut answer = public(directory, call.now);
    if revoked.iter().any(|one| one.retired.is_none()) {
        let (put, signs) = fresh(call)?;
        changes.push(put);
        answer = signs;
    } else if let Some(signs) = directory.signing().find(|one| one.retired.is_none()) {
        answer.signing_key_public = signs.key.public().to_pem();
    }
    Ok(Effect {
        changes,
        answer,
        quiet: false,
    })
}

/// The keys that verify, the one that signs first.
pub(super) fn public(directory: &Directory, now: DateTime<Utc>) -> IamResponse {
    IamResponse {
        signing_key_public: keys(directory, now).to_pem(),
        ..IamResponse::default()
    }
}

fn keys(directory: &Directory, now: DateTime<Utc>) -> PublicKeys {
    let mut keys: Vec<&Signing> = directory.signing().filter(|one| one.counts(now)).collect();
    keys.sort_by_key(|one| one.retired.is_some());
    keys.into_iter().map(|one| one.key.public()).collect()
}

/// What a good token says. Nothing was signed by a key after another took its place: whoever has found a key that was
/// retired makes no tokens by it.
fn verified(directory: &Directory, now: DateTime<Utc>, token: &str) -> Option<Claims> {
    let mut keys = directory.signing().filter(|one| one.counts(now));
    keys.find_map(|one| {
        let key = PublicKeys::from_iter([one.key.public()]);
        let claims = key.verify(token, now.timestamp()).ok()?;
        let late = |at: DateTime<Utc>| claims.iat > at.timestamp() + tg_jwt::SKEW;
        (!one.retired.is_some_and(late)).then_some(claims)
    })
}

/// Whose token it is. Every reason to refuse one reads the same.
pub(super) fn resolve(
    directory: &Directory,
    now: DateTime<Utc>,
    ask: &IamRequest,
) -> Result<IamResponse, Error> {
    let claims = verified(directory, now, &ask.api_key).ok_or_else(auth_failed)?;
    let user = directory
        .user(&claims.sub)
        .filter(|user| directory.is_active(user) && claims.session == Some(user.session))
        .ok_or_else(auth_failed)?;
    let left = claims.exp - now.timestamp();
    Ok(IamResponse {
        decision_ttl_seconds: left.clamp(1, DECISION_TTL),
        resolved_user_id: user.id.clone(),
        resolved_default_workspace: claims.default_workspace,
        resolved_roles: user.roles.iter().cloned().collect(),
        ..IamResponse::default()
    })
}
