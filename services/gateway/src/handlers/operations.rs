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
use super::{read, sse};
use crate::ask::Part;
use crate::call::{Call, Leave, Meta, Target};
use crate::engine::compat::errors::CompatError;
use crate::engine::event;
use crate::engine::translate::Body;
use crate::error::{RequestError, json_response, json_written};
use crate::running::Running;
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
}

/// Asks, and answers with events. What goes wrong before the first one is answered as everywhere.
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
    } = asked(shape, app, meta, headers, given, true).await?;
    let first = running.next().await;
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
            let (name, data) = named(part);
            if last {
                *at_end.lock() = headers_of(shape, &data).unwrap_or_default();
            }
            let event = outlet.hold(event(&name, &data)).await;
            Some((event, (!last).then_some((None, running, outlet))))
        }
    });
    let trailers = move || std::mem::take(&mut *trailers.lock());
    let heartbeat = app.options.heartbeat;
    Ok(sse::kept_alive_until(events, heartbeat, TRAILERS, trailers))
}

fn event(name: &str, data: &Object) -> Bytes {
    event::event(&["event: ", name, "\n"], data)
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

/// Reads the request and asks.
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
    shape.beside(&mut body, headers, given.query.as_deref())?;
    let mut path = given.path;
    let in_path = path.remove(WORKSPACE);
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
        leave: Leave::Cancel,
        whole: !streaming,
        meta,
    };
    let running = app.start(&identity, call, CancellationToken::new()).await;
    let mut running = running.map_err(|error| refused(&error))?;
    if let Some(question) = question {
        running = running.holding(question);
    }
    let outlet = app.sending.outlet(&identity);
    Ok(Asked { running, outlet })
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
mod tests {
    use tg_schemas::operations::{ListMessages, SendMessage};

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        pairs.collect()
    }

    fn code(failure: &Object) -> &str {
        failure["code"].as_str().unwrap()
    }

    #[test]
    fn the_user_is_the_one_of_the_header_and_not_of_the_body() {
        let mut body = Body::new();
        body.insert("user_id".to_owned(), "eve".into());
        let given = headers(&[("spass-user-id", " ann "), ("spass-caller-depth", "2")]);
        let shape = Shape::of::<SendMessage>();
        shape.beside(&mut body, &given, None).unwrap();
        assert_eq!(body["user_id"], "ann");
        assert_eq!(body["caller_depth"], 2);
        shape.beside(&mut body, &HeaderMap::new(), None).unwrap();
        assert!(!body.contains_key("user_id"));
    }

    /// 35: the header of the depth.
    #[test]
    fn line_035_a_depth_that_is_not_a_number_is_refused() {
        let given = headers(&[("spass-caller-depth", "x")]);
        let shape = Shape::of::<SendMessage>();
        let refused = shape.beside(&mut Body::new(), &given, None);
        assert_eq!(code(&refused.unwrap_err()), "invalid_header");
    }

    #[test]
    fn a_query_is_read_in_the_form_of_its_fields() {
        let mut body = Body::new();
        let query = Some("limit=3&cursor=a%20b&live=true&other=1");
        let shape = Shape::of::<ListMessages>();
        shape.beside(&mut body, &HeaderMap::new(), query).unwrap();
        let expected = json!({"limit": 3, "cursor": "a b", "live": true});
        assert_eq!(Value::Object(body), expected);
        let wrong = Some("limit=x");
        let refused = shape.beside(&mut Body::new(), &HeaderMap::new(), wrong);
        assert_eq!(code(&refused.unwrap_err()), "validation_error");
    }

    /// 23: where an archived session continues.
    #[test]
    fn line_023_an_archived_session_names_the_place_of_its_successor() {
        let path = [("name", "a"), ("session_id", "1")];
        let path = path.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let failure = Failure::new(FailureCode::SessionArchived, "m").continued_in("2");
        let failure = object_of(&failure);
        let place = continues_at(
            &SendMessage::META,
            SendMessage::META.path,
            path.into(),
            &failure,
        );
        assert_eq!(place.as_deref(), Some("/a1/agents/a/sessions/2/messages"));
        let response = told(&failure, place, ("request_id", "r"));
        assert_eq!(response.status(), StatusCode::PERMANENT_REDIRECT);
        assert!(response.headers().contains_key(header::LOCATION));
    }

    #[test]
    fn a_part_is_an_event_of_its_own_name() {
        let body = |value: Value| value.as_object().cloned().unwrap();
        let part = |value, last, failed| Part::Body {
            body: body(value).into(),
            last,
            failed,
        };
        let told = |part: Part| {
            let (name, data) = named(part);
            event(&name, &data)
        };
        let token = json!({"event": "token", "data": {"delta": "a\nb"}});
        let token = told(part(token, false, false));
        assert_eq!(&token[..], b"event: token\ndata: {\"delta\":\"a\\nb\"}\n\n");
        let failed = part(
            json!({"error": {"type": "upstream_error", "message": "m"}}),
            true,
            true,
        );
        let told = String::from_utf8(told(failed).to_vec()).unwrap();
        assert!(told.starts_with("event: error\n") && told.contains("upstream_error"));
    }

    #[test]
    fn an_error_of_the_mesh_says_nothing_of_what_is_inside() {
        let error = Error::new(ErrorCode::Storage, "at /var/lib/x");
        let failure = failed_with(&error);
        assert_eq!(code(&failure), "internal_error");
        assert_eq!(failure["message"], "an internal error");
        let broken = failed_with(&Error::new(ErrorCode::Interrupted, "by a kill"));
        assert_eq!(code(&broken), "agent_unavailable");
        assert_eq!(code(&refused(&RequestError::AuthFailure)), "unauthorized");
        assert_eq!(
            told(&failure, None, ("request_id", "r")).status(),
            StatusCode::INTERNAL_SERVER_ERROR
        );
    }
}
