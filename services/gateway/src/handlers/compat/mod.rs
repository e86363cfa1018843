//! `/v1/…`: endpoints in the words of model APIs, over services of a flow. Any client of these APIs is a client here; who is
//! let in, what is bounded and what is counted is as at every endpoint.

mod answer;
mod chats;
mod embeddings;
mod kept;
mod models;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::Value;
use tg_schemas::operations::{FailureCode, SESSIONS};
use tg_schemas::{Error, ErrorCode, WorkspaceId};

pub(crate) use chats::{chat, completions, count_tokens, messages, responses};
pub(crate) use embeddings::embed;
pub(crate) use kept::{cancel_response, delete_response, read_response};
pub(crate) use models::{health, list, one, used};

use super::read;
use crate::ask::Part;
use crate::auth::{Identity, Resource};
use crate::call::{Call, Leave, Meta, Target};
use crate::engine::compat::chat::reply::Chat;
use crate::engine::compat::dialect::Dialect;
use crate::engine::compat::errors::CompatError;
use crate::engine::compat::messages::reply::Messages;
use crate::engine::translate::Body;
use crate::error::{RequestError, json_response};
use crate::state::App;

/// The flow that is asked where none is named.
const FLOW: &str = "default";
const FLOW_HEADER: &str = "x-flow";
const WORKSPACE_HEADER: &str = "spass-tenant";
/// Below it failures have the shape that clients of messages read.
const MESSAGES: &str = "/v1/messages";

/// What is not there, below `/v1`.
pub(crate) fn nothing(path: &str, meta: &Meta) -> Response {
    let fault = CompatError::new(404, "not_found", "there is no such endpoint");
    told_at(path, &fault, &meta.request_id)
}

/// What is there below `/v1` and does not take this method. Codex tries a socket first, and asks by HTTP at once where an upgrade is
/// refused with 426.
pub(crate) fn not_allowed(path: &str, headers: &HeaderMap, meta: &Meta) -> Response {
    let fault = match headers.contains_key(header::UPGRADE) {
        true => CompatError::new(
            426,
            "upgrade_required",
            "there are no sockets here: send a POST",
        ),
        false => CompatError::new(
            405,
            "method_not_allowed",
            "this endpoint does not take this method",
        ),
    };
    told_at(path, &fault, &meta.request_id)
}

/// The gateway turns the request away before its endpoint sees it, below `/v1`.
pub(crate) fn turned_away(path: &str, error: RequestError, id: &str) -> Response {
    told_at(path, &refused(error), id)
}

/// A failure in the form that clients read at this path.
fn told_at(path: &str, fault: &CompatError, id: &str) -> Response {
    match path.starts_with(MESSAGES) {
        true => told::<Messages>(fault, id),
        false => told::<Chat>(fault, id),
    }
}

/// A failure as an API reports it.
fn told<D: Dialect>(fault: &CompatError, request_id: &str) -> Response {
    let status = StatusCode::from_u16(fault.status).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut response = json_response(status, &D::failure(fault, request_id));
    let headers = response.headers_mut();
    if let Some(seconds) = fault.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if status == StatusCode::UNAUTHORIZED {
        let bearer = HeaderValue::from_static("Bearer");
        headers.insert(header::WWW_AUTHENTICATE, bearer);
    }
    response
}

/// Who asks, by a bearer token, else by the header in which some clients send their key.
async fn known(app: &App, headers: &HeaderMap, meta: &Meta) -> Result<Identity, CompatError> {
    app.known(read::key(headers), meta).await.map_err(refused)
}

/// A refusal of the gateway in the words of these APIs.
fn refused(error: RequestError) -> CompatError {
    match &error {
        RequestError::InvalidFlow { .. } | RequestError::KindNotInFlow => {
            CompatError::new(503, "agent_unavailable", "there is no such flow running")
        }
        RequestError::WorkspaceNotFound => {
            CompatError::new(404, "workspace_not_found", "workspace not found")
        }
        RequestError::AuthFailure => CompatError::new(401, "unauthorized", "auth failure"),
        RequestError::AccessDenied => CompatError::new(403, "forbidden", "access denied"),
        RequestError::ModelNotAllowed => CompatError::not_allowed(),
        RequestError::Unchecked => {
            CompatError::new(503, "agent_unavailable", error.error().message)
        }
        RequestError::TooLarge { .. } => {
            CompatError::new(413, "payload_too_large", error.error().message)
        }
        RequestError::Slowed { seconds, .. } => {
            let seconds = i64::try_from(*seconds).ok();
            CompatError::of(&error.error(), None, None).after(seconds)
        }
        RequestError::Service(inner) => CompatError::of(inner, None, None),
        RequestError::NoRoom(_) => CompatError::of(&error.error(), None, None),
        _ => CompatError::new(400, "validation_error", error.error().message),
    }
}

/// The text of a header. One that cannot be read is not taken for one that is not there: it names another flow or
/// workspace.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, CompatError> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    let value = value.to_str().map_err(|_| {
        let message = format!("{name}: must consist of visible ASCII characters");
        CompatError::new(400, "invalid_header", message)
    })?;
    let value = value.trim();
    Ok((!value.is_empty()).then_some(value))
}

/// The workspace that a request names.
fn workspace(headers: &HeaderMap) -> Result<Option<String>, CompatError> {
    Ok(text(headers, WORKSPACE_HEADER)?.map(str::to_owned))
}

/// The workspace that a request is for.
fn workspace_of(identity: &Identity, headers: &HeaderMap) -> Result<String, CompatError> {
    Ok(workspace(headers)?.unwrap_or_else(|| identity.workspace.to_string()))
}

/// The flow that a request is for.
fn flow(headers: &HeaderMap) -> Result<&str, CompatError> {
    Ok(text(headers, FLOW_HEADER)?.unwrap_or(FLOW))
}

/// Lets in whoever may ask a kind of service in the flow that is meant, before anything of the workspace is looked at.
async fn let_in(
    app: &App,
    identity: &Identity,
    headers: &HeaderMap,
    kind: &str,
) -> Result<(), CompatError> {
    let workspace = workspace_of(identity, headers)?;
    let workspace = WorkspaceId::new(&workspace).map_err(|error| refused(error.into()))?;
    let flow = flow(headers)?;
    let gate = Target::kind(kind, flow).map_err(refused)?.gate();
    let resource = Resource::flow(workspace.as_str(), flow);
    let allowed = app.allowed(identity, gate, &resource, &workspace).await;
    allowed.map(drop).map_err(refused)
}

/// A question to a service of the flow that is meant.
fn call(
    kind: &str,
    meta: Meta,
    headers: &HeaderMap,
    body: Body,
    whole: bool,
) -> Result<Call, CompatError> {
    Ok(Call {
        target: Target::kind(kind, flow(headers)?).map_err(refused)?,
        body,
        workspace: workspace(headers)?,
        timeout: read::timeout(headers).map_err(refused)?,
        leave: Leave::Cancel,
        whole,
        meta: Meta {
            translated: true,
            ..meta
        },
    })
}

/// An operation of the sessions, whose name the body has.
fn operation(
    meta: Meta,
    headers: &HeaderMap,
    body: Body,
    whole: bool,
) -> Result<Call, CompatError> {
    Ok(Call {
        target: Target::service(SESSIONS, &body).map_err(refused)?,
        body,
        workspace: workspace(headers)?,
        timeout: read::timeout(headers).map_err(refused)?,
        leave: Leave::Cancel,
        whole,
        meta,
    })
}

/// A part of an answer, and whether it is the last.
fn part(part: Option<Part>) -> Result<(Body, bool), CompatError> {
    match part {
        Some(Part::Body { body, last, failed }) => match (failed, last) {
            (true, _) => Err(failure(&body.into_tree())),
            (false, true) => Ok((body.into_tree(), true)),
            (false, false) => Ok((body.into_unexplained(), false)),
        },
        Some(Part::Error(error)) => Err(CompatError::of(&error, None, None)),
        None => {
            let error = Error::new(ErrorCode::Interrupted, "the answer is incomplete");
            Err(CompatError::of(&error, None, None))
        }
    }
}

/// What a part that failed says of it.
fn failure(body: &Body) -> CompatError {
    let error = body.get("error").cloned().unwrap_or_default();
    // The sessions have codes of their own, with their statuses.
    let named = error["type"].as_str().unwrap_or_default();
    if let Some(code) = FailureCode::all().find(|code| code.as_str() == named) {
        let text = error["message"].as_str().unwrap_or_default();
        let seconds = error["retry_after"].as_i64();
        return of_sessions(code, text, seconds);
    }
    let error: Error = serde_json::from_value(error).unwrap_or_default();
    let failure = body.get("failure").and_then(Value::as_str);
    let seconds = body.get("retry_after").and_then(Value::as_i64);
    CompatError::of(&error, failure, seconds)
}

/// A failure of the sessions.
fn of_sessions(code: FailureCode, text: &str, seconds: Option<i64>) -> CompatError {
    let fault = match code {
        FailureCode::AgentNotFound => {
            let text = "model: the workspace has no agent of this name";
            CompatError::new(404, "model_not_found", text)
        }
        // A redirect would send the message to an endpoint of another API.
        FailureCode::SessionArchived => CompatError::new(409, code.as_str(), text),
        code => CompatError::new(code.status(), code.as_str(), text),
    };
    fault.after(seconds)
}
