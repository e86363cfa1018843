//! `POST /api/v1/auth/*`: operations of the iam service with a endpoint of their own. Failures are masked.

use axum::body::Body as HttpBody;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tg_schemas::ErrorCode;
use tokio_util::sync::CancellationToken;

use super::{read, service::stranger, whole::Whole};
use crate::auth::Identity;
use crate::call::{Call, Leave, Meta, Target};
use crate::engine::translate::{Body, Fields};
use crate::error::{RequestError, json_response, refusal};
use crate::state::{App, Shared};

/// Carries the one-time code of a fresh system.
const CODE: &str = "x-bootstrap-code";

/// Password, or a token of an external issuer, for a token.
pub(crate) async fn login(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    let outcome = async {
        let given = read::body(&app, &headers, body, None).await?.0;
        let mut body = Body::new();
        for key in ["username", "password", "workspace"] {
            body.insert(key.into(), json!(Fields::new(&given).text(key)?));
        }
        // Of an external issuer. It travels where other credentials do.
        body.insert("api_key".into(), json!(Fields::new(&given).text("token")?));
        let reply = ask(&app, "login", body, &stranger(), meta).await?;
        if let Some(response) = slowed(&reply) {
            return Ok(response);
        }
        let granted = reply.get("jwt").is_some_and(Value::is_string);
        Ok(masked(reply, granted))
    };
    outcome.await.unwrap_or_else(refused)
}

/// What the iam service answers to a name and a password: a token, or why there is none.
pub(super) async fn sign_in(
    app: &App,
    username: &str,
    password: &str,
    meta: Meta,
) -> Result<Body, RequestError> {
    let fields = [
        ("username", username),
        ("password", password),
        ("workspace", ""),
        ("api_key", ""),
    ];
    let fields = fields.map(|(key, value)| (key.to_owned(), json!(value)));
    ask(app, "login", Body::from_iter(fields), &stranger(), meta).await
}

/// The first key of a fresh system, for who has its one-time code, in a header or the body, or asks from a program
/// on the same machine.
pub(crate) async fn bootstrap(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    let outcome = async {
        // Clients may send nothing, or what they like.
        let given = read::body(&app, &headers, body, None).await;
        let given = given.map_or_else(|_| Body::new(), |(body, _)| body);
        let header = headers.get(CODE).and_then(|code| code.to_str().ok());
        let code = match header {
            Some(code) => code.to_owned(),
            None => Fields::new(&given).text("code")?,
        };
        let asked = Body::from_iter([("code".to_owned(), json!(code))]);
        let reply = ask(&app, "bootstrap", asked, &stranger(), meta).await?;
        let granted = reply.contains_key("bootstrap_admin_api_key");
        Ok(masked(reply, granted))
    };
    outcome.await.unwrap_or_else(RequestError::into_response)
}

/// Whether a fresh system waits for its first key. The body is not read.
pub(crate) async fn bootstrap_status(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
) -> Response {
    match ask(&app, "bootstrap-status", Body::new(), &stranger(), meta).await {
        Ok(reply) => json_response(StatusCode::OK, &reply),
        Err(fault) => fault.into_response(),
    }
}

/// The caller's own password.
pub(crate) async fn change_password(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    let outcome = async {
        let identity = app.known(read::bearer(&headers), &meta).await?;
        let given = read::body(&app, &headers, body, None).await?.0;
        let fields = Fields::new(&given);
        let mut body = Body::new();
        body.insert("user_id".into(), json!(&*identity.id));
        body.insert("password".into(), json!(fields.text("current_password")?));
        body.insert("new_password".into(), json!(fields.text("new_password")?));
        let reply = ask(&app, "change-password", body, &identity, meta).await?;
        if let Some(response) = slowed(&reply) {
            return Ok(response);
        }
        Ok(match reply.get("error") {
            None => json_response(StatusCode::OK, &reply),
            Some(error) => changed_not(error),
        })
    };
    outcome.await.unwrap_or_else(refused)
}

fn changed_not(error: &Value) -> Response {
    let text = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
    match ErrorCode::from_wire(text("type")) {
        ErrorCode::Unauthenticated => RequestError::AuthFailure.into_response(),
        _ => refusal(StatusCode::BAD_REQUEST, text("message")),
    }
}

/// What is no answer to the credentials: too many were tried, or nobody could look at them.
fn slowed(reply: &Body) -> Option<Response> {
    let error = reply.get("error")?;
    let text = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
    come_again(ErrorCode::from_wire(text("type")), text("message"))
}

/// A refusal of the gateway itself; where it is busy, it says when to come again as the iam service does.
fn refused(fault: RequestError) -> Response {
    let later = match &fault {
        RequestError::Service(error) => come_again(error.code(), &error.message),
        _ => None,
    };
    later.unwrap_or_else(|| fault.into_response())
}

fn come_again(code: ErrorCode, message: &str) -> Option<Response> {
    if !code.is_transient() {
        return None;
    }
    let status = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let mut response = refusal(status, message);
    response
        .headers_mut()
        .insert(header::RETRY_AFTER, pause(message));
    Some(response)
}

/// In how many seconds to come again, as a header has it. The iam service says it in words.
pub(super) fn pause(message: &str) -> HeaderValue {
    let mut words = message.split(' ');
    let seconds = words.find_map(|word| word.parse::<u32>().ok());
    HeaderValue::from(seconds.unwrap_or(1))
}

/// Success, or the one refusal that says nothing.
fn masked(reply: Body, granted: bool) -> Response {
    if granted {
        json_response(StatusCode::OK, &reply)
    } else {
        RequestError::AuthFailure.into_response()
    }
}

async fn ask(
    app: &App,
    operation: &str,
    mut body: Body,
    identity: &Identity,
    meta: Meta,
) -> Result<Body, RequestError> {
    // Who is known was counted as such.
    if identity.id.is_empty() {
        app.pace.of_address(meta.address)?;
    }
    body.insert("operation".into(), json!(operation));
    let call = Call {
        target: Target::service("iam", &body)?,
        body,
        workspace: None,
        timeout: None,
        leave: Leave::Cancel,
        whole: true,
        meta,
    };
    let mut running = app.start(identity, call, CancellationToken::new()).await?;
    Whole::Last.collect(&mut running).await
}
