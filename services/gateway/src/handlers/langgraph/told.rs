//! How failures are reported to these clients.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};
use tg_schemas::operations::{Failure, FailureCode, Object};

use crate::call::Meta;
use crate::error::{RequestError, json_response};
use crate::handlers::asked::Asked;
use crate::handlers::caller::{Caller, code, is};
use crate::handlers::operations::refused;
use crate::handlers::shape::object_of;

/// A refusal of what a request says.
pub(super) fn unfit(failure: Failure) -> Object {
    object_of(&failure)
}

/// A failure as these clients read it.
fn told(failure: &Object, id: &str) -> Response {
    let known = FailureCode::all().find(|one| is(failure, *one));
    let status = match known.unwrap_or(FailureCode::InternalError).status() {
        // A redirect would send the message to an endpoint of another API.
        308 => 409,
        status => status,
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let detail = failure.get("message").cloned().unwrap_or_default();
    let body = json!({"detail": detail, "code": code(failure), "request_id": id});
    let mut response = json_response(status, &body);
    let headers = response.headers_mut();
    if let Some(seconds) = failure.get("retry_after").and_then(Value::as_i64) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if status == StatusCode::UNAUTHORIZED {
        let bearer = HeaderValue::from_static("Bearer");
        headers.insert(header::WWW_AUTHENTICATE, bearer);
    }
    response
}

/// Answers, or says what failed.
pub(super) async fn answered<W, F>(asked: Asked, work: W) -> Response
where
    W: FnOnce(Caller) -> F,
    F: Future<Output = Result<Response, Object>>,
{
    let id = asked.meta.request_id.clone();
    let outcome = async {
        let caller = Caller::new(asked).await?;
        work(caller).await
    };
    outcome.await.unwrap_or_else(|failure| told(&failure, &id))
}

/// What is not there, below `/langgraph`.
pub(crate) fn nothing(meta: &Meta) -> Response {
    let failure = Failure::new(FailureCode::NotFound, "there is no such endpoint");
    told(&object_of(&failure), &meta.request_id)
}

/// What is there below `/langgraph` and does not take this method.
pub(crate) fn not_allowed(meta: &Meta) -> Response {
    let text = "this endpoint does not take this method";
    let failure = Failure::new(FailureCode::MethodNotAllowed, text);
    told(&object_of(&failure), &meta.request_id)
}

/// The gateway turns the request away before its endpoint sees it, below `/langgraph`.
pub(crate) fn turned_away(error: &RequestError, id: &str) -> Response {
    told(&refused(error), id)
}
