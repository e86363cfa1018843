//! Routes of operations as types: what an operation declares of its path, its headers and its query makes its request, and
//! its types make the response. One function serves all of them: it gets the shape of the operation.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Body as HttpBody;
use axum::extract::rejection::PathRejection;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, patch, post, put};
use bytes::Bytes;
use futures::stream;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tg_schemas::limits::CHAT_BODY;
use tg_schemas::operations::{
    Failure, FailureCode, Meta as Declared, Object, Operation, TENANT, WORKSPACE,
};
use tg_schemas::{Error, ErrorCode};
use tokio_util::sync::CancellationToken;

use super::shape::{Shape, object_of};
use super::{read, runs, sse};
use crate::ask::Part;
use crate::auth::Identity;
use crate::call::{Call, Leave, Meta, Target};
use crate::engine::compat::errors::CompatError;
use crate::engine::event;
use crate::engine::translate::Body;
use crate::engine::translate::agent::GAP;
use crate::error::{RequestError, json_response, json_written};
use crate::rejoin;
use crate::running::{Place, Running};
use crate::sending::Outlet;
use crate::state::{App, Shared};

/// What a stream of events may have behind its last event: the headers of the same answer in one piece.
const TRAILERS: &str = "spass-cost-source, spass-cost-sub-calls, spass-cost-usd, spass-cost-eur, \
                        spass-session-compacted, spass-session-compacted-tokens";

/// The endpoint of an operation.
pub(crate) fn route<O: Operation>() -> MethodRouter<Shared> {
    routed(Shape::of::<O>(), false)
}

/// The endpoint that answers the same with events.
pub(crate) fn stream_route<O: Operation>() -> MethodRouter<Shared> {
    routed(Shape::of::<O>(), true)
}

fn routed(shape: Shape, events: bool) -> MethodRouter<Shared> {
    let serve = move |State(app): State<Shared>, head: Head, body: HttpBody| {
        answer(shape, events, app, head, body)
    };
    match shape.meta.method {
        _ if events => post(serve),
        "GET" => get(serve),
        "DELETE" => delete(serve),
        "PATCH" => patch(serve),
        "PUT" => put(serve),
        _ => post(serve),
    }
}

/// What the id of a request is called in an error below `/a1`.
pub(crate) const REQUEST_ID: &str = "request_id";

/// What is not there, below `/a1` and among the workspaces.
pub(crate) fn nothing(id_key: &str, meta: &Meta) -> Response {
    let failure = Failure::new(FailureCode::NotFound, "there is no such endpoint");
    told(&object_of(&failure), None, (id_key, &*meta.request_id))
}

/// What is there and does not take this method.
pub(crate) fn not_allowed(id_key: &str, meta: &Meta) -> Response {
    let text = "this endpoint does not take this method";
    let failure = Failure::new(FailureCode::MethodNotAllowed, text);
    told(&object_of(&failure), None, (id_key, &*meta.request_id))
}

/// The gateway turns the request away before its endpoint sees it, below `/a1` and among the workspaces.
pub(super) fn turned_away(id_key: &str, error: &RequestError, id: &str) -> Response {
    told(&refused(error), None, (id_key, id))
}

/// What a request comes with before its body.
type Head = (
    Extension<Meta>,
    Method,
    Result<Path<HashMap<String, String>>, PathRejection>,
    RawQuery,
    HeaderMap,
);

/// What a request comes with, beside its headers.
struct Given {
    method: Method,
    path: HashMap<String, String>,
    query: Option<String>,
    body: HttpBody,
}

/// Answers whole, or with events.
async fn answer(
    shape: Shape,
    events: bool,
    app: Shared,
    (Extension(meta), method, path, RawQuery(query), headers): Head,
    body: HttpBody,
) -> Response {
    let declared = shape.meta;
    let Ok(Path(path)) = path else {
        // It is no text.
        return nothing(declared.id_key, &meta);
    };
    let id = meta.request_id.clone();
    let place = path.clone();
    let given = Given {
        method,
        path,
        query,
        body,
    };
    let (answered, at) = match events {
        true => (
            streamed(shape, &app, meta, &headers, given).await,
            declared.stream,
        ),
        false => (
            done(shape, &app, meta, &headers, given).await,
            declared.path,
        ),
    };
    answered.unwrap_or_else(|failure| {
        if at.starts_with("/v1/") {
            return told_of_models(&failure, &id);
        }
        let place = continues_at(declared, at, place, &failure);
        told(&failure, place, (declared.id_key, &*id))
    })
}

/// An answer under way, and what sends it.
struct Asked {
    running: Running,
    outlet: Outlet,
    /// The client has the beginning of it.
    joins: bool,
}

/// Asks, or joins a stream again, and answers with events. What goes wrong before the first one is answered as everywhere.
async fn streamed(
    shape: Shape,
    app: &App,
    meta: Meta,
    headers: &HeaderMap,
    given: Given,
) -> Result<Response, Object> {
    let Asked {
        mut running,
        outlet,
        joins,
    } = asked(shape, app, meta, headers, given, true).await?;
    let first = match joins {
        // The next part may be long in coming, and a failure ends a stream that has begun.
        true => None,
        false => running.next().await,
    };
    match first {
        Some(Part::Body {
            body, failed: true, ..
        }) => return Err(result(body.into_tree(), true).err().unwrap_or_default()),
        Some(Part::Error(error)) => return Err(failed_with(&error)),
        _ => {}
    }
    let trailers = Arc::new(Mutex::new(HeaderMap::new()));
    let at_end = trailers.clone();
    let events = stream::unfold(Some((first, running, outlet)), move |rest| {
        let at_end = at_end.clone();
        async move {
            let (first, mut running, outlet) = rest?;
            let part = match first {
                Some(part) => part,
                None => running.next().await?,
            };
            let last = !matches!(part, Part::Body { last: false, .. });
            if joins && says_nothing(&part) {
                return None;
            }
            let (name, data) = named(part);
            if last {
                *at_end.lock() = headers_of(shape, &data).unwrap_or_default();
            }
            let written = event(&name, &data, running.place());
            let event = outlet.hold(written).await;
            Some((event, (!last).then_some((None, running, outlet))))
        }
    });
    let trailers = move || std::mem::take(&mut *trailers.lock());
    let heartbeat = app.options.heartbeat;
    Ok(sse::kept_alive_until(events, heartbeat, TRAILERS, trailers))
}

/// An event, with the place by which it is joined again where its stream is kept.
fn event(name: &str, data: &Object, place: Option<Place<'_>>) -> Bytes {
    let Some(Place { run, offset }) = place else {
        return event::event(&["event: ", name, "\n"], data);
    };
    let offset = offset.to_string();
    let before = ["id: ", run, ":", offset.as_str(), "\nevent: ", name, "\n"];
    event::event(&before, data)
}

/// Whether a part only ends a stream of which its client has everything.
fn says_nothing(part: &Part) -> bool {
    matches!(part, Part::Body { body, last: true, .. } if body.is_empty())
}

/// The name and the data of the event that a part is.
fn named(part: Part) -> (String, Object) {
    match part {
        Part::Error(error) => ("error".to_owned(), failed_with(&error)),
        Part::Body {
            body, failed: true, ..
        } => (
            "error".to_owned(),
            result(body.into_tree(), true).err().unwrap_or_default(),
        ),
        Part::Body { body, .. } => {
            let mut body = body.into_tree();
            if let Some(Value::Object(gap)) = body.remove(GAP) {
                return (GAP.to_owned(), gap);
            }
            let name = body.get("event").and_then(Value::as_str);
            let name = name.unwrap_or("done").to_owned();
            match body.remove("data").or_else(|| body.remove("result")) {
                Some(Value::Object(data)) => (name, data),
                _ => (name, Object::new()),
            }
        }
    }
}

/// The headers of a reply.
fn headers_of(shape: Shape, reply: &Object) -> Result<HeaderMap, String> {
    let headers = (shape.headers)(reply)?.into_iter();
    let headers = headers.filter_map(|(name, value)| {
        let value = HeaderValue::from_str(&value).ok()?;
        Some((HeaderName::from_static(name), value))
    });
    Ok(headers.collect())
}

/// Reads the request, and asks or joins.
async fn asked(
    shape: Shape,
    app: &App,
    meta: Meta,
    headers: &HeaderMap,
    given: Given,
    streaming: bool,
) -> Result<Asked, Object> {
    let identity = app.known(read::bearer(headers), &meta).await;
    let identity = identity.map_err(|error| refused(&error))?;
    let (mut body, question) = match is_empty(headers, &given.method) {
        true => (Body::new(), None),
        false => {
            let read = read::body_of(app, headers, given.body, Some(&identity), CHAT_BODY).await;
            let (body, question) = read.map_err(|error| refused(&error))?;
            (body, Some(question))
        }
    };
    let mut path = given.path;
    let in_path = path.remove(WORKSPACE);
    let resumed = match streaming {
        true => read::last_event(headers).map_err(|error| refused(&error))?,
        false => None,
    };
    let joins = resumed.is_some();
    let running = match resumed {
        Some(request) => joined(app, &identity, request, meta).await,
        None => {
            shape.beside(&mut body, headers, given.query.as_deref())?;
            for (field, text) in path {
                body.insert(field, text.into());
            }
            // What does not fit is refused here, so that the field is named whoever serves the operation.
            (shape.fits)(&body).map_err(shape.unreadable)?;
            body.insert("operation".to_owned(), shape.meta.name.into());
            body.remove("streaming");
            if streaming {
                body.insert("streaming".to_owned(), true.into());
            }
            let target = Target::service(shape.meta.service, &body);
            let call = Call {
                target: target.map_err(|error| refused(&error))?,
                body,
                workspace: match in_path {
                    Some(named) => Some(named),
                    None => workspace(headers)?,
                },
                timeout: read::timeout(headers).map_err(|error| refused(&error))?,
                leave: match streaming {
                    true => read::leave(headers).map_err(|error| refused(&error))?,
                    false => Leave::Cancel,
                },
                whole: !streaming,
                meta,
            };
            app.start(&identity, call, CancellationToken::new()).await
        }
    };
    let mut running = running.map_err(|error| refused(&error))?;
    if let Some(question) = question {
        running = running.holding(question);
    }
    let outlet = app.sending.outlet(&identity);
    Ok(Asked {
        running,
        outlet,
        joins,
    })
}

/// Joins a stream that a gateway keeps. Runs of the agent have events of another form.
async fn joined(
    app: &App,
    identity: &Identity,
    request: Body,
    meta: Meta,
) -> Result<Running, RequestError> {
    let run = request.get("run").and_then(Value::as_str);
    if !run.is_some_and(|run| app.kept.knows(run)) {
        return Err(rejoin::unknown().into());
    }
    runs::join(app, identity, request, None, meta).await
}

/// Reads the request, asks, and writes the reply.
async fn done(
    shape: Shape,
    app: &App,
    meta: Meta,
    headers: &HeaderMap,
    given: Given,
) -> Result<Response, Object> {
    let Asked {
        mut running,
        outlet,
        ..
    } = asked(shape, app, meta, headers, given, false).await?;
    let result = loop {
        match running.next().await {
            Some(Part::Body {
                body,
                last: true,
                failed,
                ..
            }) => break result(body.into_tree(), failed)?,
            Some(Part::Body { .. }) => {}
            Some(Part::Error(error)) => return Err(failed_with(&error)),
            None => {
                let error = Error::new(ErrorCode::Interrupted, "the answer is incomplete");
                return Err(failed_with(&error));
            }
        }
    };
    let more = headers_of(shape, &result).map_err(|_| {
        let text = "the answer could not be read";
        object_of(&Failure::new(FailureCode::InternalError, text))
    })?;
    let status = StatusCode::from_u16(shape.meta.status).unwrap_or(StatusCode::OK);
    let mut response = match status {
        StatusCode::NO_CONTENT => status.into_response(),
        _ => {
            let text = Value::Object(result).to_string();
            json_written(status, outlet.hold_whole(text.into()).await)
        }
    };
    response.headers_mut().extend(more);
    Ok(response)
}

/// Whether a request has no body: by its method, or as it says.
fn is_empty(headers: &HeaderMap, method: &Method) -> bool {
    let length = headers.get(header::CONTENT_LENGTH);
    let chunked = headers.contains_key(header::TRANSFER_ENCODING);
    let empty = length.map_or(!chunked, |length| length == "0");
    empty || *method == Method::GET || *method == Method::HEAD || *method == Method::DELETE
}

/// The workspace that a request names.
fn workspace(headers: &HeaderMap) -> Result<Option<String>, Object> {
    let Some(value) = headers.get(TENANT) else {
        return Ok(None);
    };
    match value.to_str().map(str::trim) {
        Ok("") => Ok(None),
        Ok(name) => Ok(Some(name.to_owned())),
        Err(_) => {
            let text = format!("{TENANT}: must consist of visible ASCII characters");
            Err(object_of(&Failure::new(FailureCode::InvalidHeader, text)))
        }
    }
}

/// The result of the last part, or the failure that it carries.
pub(super) fn result(mut body: Body, failed: bool) -> Result<Object, Object> {
    if !failed {
        return match body.remove("result") {
            Some(Value::Object(result)) => Ok(result),
            _ => Ok(Object::new()),
        };
    }
    let Some(Value::Object(mut error)) = body.remove("error") else {
        return Err(failed_with(&Error::default()));
    };
    let kind = error.remove("type").unwrap_or_default();
    let own = FailureCode::all().any(|code| kind == code.as_str());
    if own {
        error.insert("code".to_owned(), kind);
        return Err(error);
    }
    let text = |value: Option<Value>| value.and_then(|value| value.as_str().map(str::to_owned));
    let error = Error::typed(
        kind.as_str().unwrap_or_default(),
        text(error.remove("message")).unwrap_or_default(),
    );
    Err(failed_with(&error))
}

/// An error of the mesh in the words of the surface. What went wrong inside is not said.
pub(super) fn failed_with(error: &Error) -> Object {
    let own = |code| Failure::new(code, error.message.clone());
    let pause = i64::try_from(error.pause().unwrap_or(1)).unwrap_or(i64::MAX);
    object_of(&match error.code() {
        ErrorCode::BadRequest | ErrorCode::BadOperation => own(FailureCode::ValidationError),
        ErrorCode::TooLarge => own(FailureCode::PayloadTooLarge),
        ErrorCode::Unauthenticated => own(FailureCode::Unauthorized),
        ErrorCode::Forbidden => own(FailureCode::Forbidden),
        ErrorCode::NotFound => own(FailureCode::NotFound),
        ErrorCode::Busy | ErrorCode::RateLimited => Failure::new(
            FailureCode::RateLimited,
            "too many requests; try again later",
        )
        .after(pause),
        ErrorCode::Timeout => Failure::new(
            FailureCode::UpstreamTimeout,
            "the answer did not come in time",
        ),
        ErrorCode::NobodyServes | ErrorCode::Unavailable | ErrorCode::FlowStopped => Failure::new(
            FailureCode::AgentUnavailable,
            "agents cannot be asked at the moment",
        ),
        // A turn of a session does not hear of it.
        ErrorCode::Cancelled => Failure::new(
            FailureCode::TurnInterrupted,
            "the request was cancelled; a turn of a session continues unless cancel-turn ends it",
        ),
        ErrorCode::Interrupted => Failure::new(
            FailureCode::AgentUnavailable,
            "the answer broke off: ask again under the same X-Request-Id",
        ),
        _ => Failure::new(FailureCode::InternalError, "an internal error"),
    })
}

/// A refusal of the gateway in the words of the surface.
pub(super) fn refused(error: &RequestError) -> Object {
    let own = |code| Failure::new(code, error.error().message);
    object_of(&match error {
        RequestError::AuthFailure => own(FailureCode::Unauthorized),
        RequestError::AccessDenied => own(FailureCode::Forbidden),
        RequestError::ModelNotAllowed => own(FailureCode::ModelNotAllowed),
        RequestError::WorkspaceNotFound => own(FailureCode::WorkspaceNotFound),
        RequestError::TooLarge { .. } => own(FailureCode::PayloadTooLarge),
        RequestError::Unchecked => own(FailureCode::AgentUnavailable),
        RequestError::NoRoom(_) => own(FailureCode::RateLimited).after(1),
        RequestError::Slowed { seconds, .. } => {
            let seconds = i64::try_from(*seconds).unwrap_or(i64::MAX);
            own(FailureCode::RateLimited).after(seconds)
        }
        RequestError::Service(inner) => return failed_with(inner),
        _ => own(FailureCode::ValidationError),
    })
}

/// Where a session that was archived continues: the same path, with the successor in its place.
fn continues_at(
    declared: &Declared,
    pattern: &str,
    mut path: HashMap<String, String>,
    failure: &Object,
) -> Option<String> {
    let successor = failure.get("successor_session_id")?.as_str()?;
    path.insert("session_id".to_owned(), successor.to_owned());
    let fields = declared.path_fields();
    Some(fields.fold(pattern.to_owned(), |place, field| {
        let text = path.get(field).map_or("", String::as_str);
        place.replace(&format!("{{{field}}}"), text)
    }))
}

/// A failure as the surface reports it.
pub(super) fn told(
    failure: &Object,
    location: Option<String>,
    (id_key, id): (&str, &str),
) -> Response {
    let text = |key: &str| failure.get(key).and_then(Value::as_str).unwrap_or_default();
    let error = json!({"code": text("code"), "message": text("message"), id_key: id});
    written(failure, location, &error)
}

/// The same below `/v1`, where a failure says more.
fn told_of_models(failure: &Object, id: &str) -> Response {
    let message = failure.get("message").and_then(Value::as_str);
    let (status, code) = (code_of(failure).status(), code_of(failure).as_str());
    let fault = CompatError::new(status, code, message.unwrap_or_default());
    written(failure, None, &fault.body(id)["error"])
}

fn code_of(failure: &Object) -> FailureCode {
    let code = failure.get("code").and_then(Value::as_str);
    let known = FailureCode::all().find(|one| code == Some(one.as_str()));
    known.unwrap_or(FailureCode::InternalError)
}

fn written(failure: &Object, location: Option<String>, error: &Value) -> Response {
    let status = StatusCode::from_u16(code_of(failure).status());
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut body = json!({ "error": error });
    if let Some(successor) = failure.get("successor_session_id") {
        body["successor_session_id"] = successor.clone();
    }
    let mut response = json_response(status, &body);
    let headers = response.headers_mut();
    if let Some(seconds) = failure.get("retry_after").and_then(Value::as_i64) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(Ok(place)) = location.map(|place| HeaderValue::from_str(&place)) {
        headers.insert(header::LOCATION, place);
    }
    if status == StatusCode::UNAUTHORIZED {
        let bearer = HeaderValue::from_static("Bearer");
        headers.insert(header::WWW_AUTHENTICATE, bearer);
    }
    response
}

#[cfg(test)]
mod tests;
