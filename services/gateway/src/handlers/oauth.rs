//! `/oauth/…`: how a client of `/mcp` gets a token of its user by a browser (OAuth 2.1, as MCP 2025-11-25 asks for it). The
//! client registers, the user signs in with name and password, and the client exchanges a code for a token of the iam service.
//! Where nobody needs a key, there are no such endpoints.

use axum::body::Body as HttpBody;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tg_mesh::clock;
use tg_schemas::{Error, ErrorCode};
use tokio::time::Instant;

use super::forwarded::kept_nowhere;
use super::protected_resource::origin;
use super::sparql::decoded;
use super::{auth, oauth_page, read};
use crate::call::Meta;
use crate::codes::Granted;
use crate::engine::oauth::{Asked, Client, Given, Refused, is_for, of};
use crate::engine::rdf::media;
use crate::engine::translate::{Body, Fields};
use crate::error::{RequestError, json_response};
use crate::state::{App, Shared};

const FORM: &str = "application/x-www-form-urlencoded";

/// What the server can do (RFC 8414).
pub(crate) async fn metadata(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    if let Err(fault) = app.pace.of_address(meta.address) {
        return fault.into_response();
    }
    let Some(origin) = issuer(&app, &headers, &uri) else {
        return nothing();
    };
    let document = json!({
        "issuer": origin,
        "authorization_endpoint": format!("{origin}/oauth/authorize"),
        "token_endpoint": format!("{origin}/oauth/token"),
        "registration_endpoint": format!("{origin}/oauth/register"),
        "service_documentation": format!("{origin}/docs"),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code"],
        "token_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    });
    kept_nowhere(json_response(StatusCode::OK, &document))
}

/// An id for a client (RFC 7591).
pub(crate) async fn register(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    if app.auth.open() {
        return nothing();
    }
    let outcome = async {
        app.pace.of_address(meta.address)?;
        let given = read::body(&app, &headers, body, None).await?.0;
        let fields = Fields::new(&given);
        let (name, all) = (fields.text("client_name")?, fields.texts("redirect_uris")?);
        let allows = |origin: &str| app.options.settings.sends_users_to(origin);
        let Some(client) = Client::new(&name, all, allows) else {
            let text = "users are sent back to programs on their machine (http://127.0.0.1, http://localhost), and to origins \
                        that the operator names (gateway.oauth_origins)";
            return Ok(refusal("invalid_redirect_uri", text));
        };
        let unwritten = |_| Error::new(ErrorCode::Internal, "the client cannot be described");
        let registered = json!({
            "client_id": client.id().map_err(unwritten)?,
            "client_name": client.name,
            "redirect_uris": client.redirects,
            "grant_types": ["authorization_code"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        });
        Ok(kept_nowhere(json_response(
            StatusCode::CREATED,
            &registered,
        )))
    };
    outcome
        .await
        .unwrap_or_else(|fault| refused(fault, "invalid_client_metadata"))
}

/// The page on which a user signs in for a client.
pub(crate) async fn ask(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    if let Err(fault) = app.pace.of_address(meta.address) {
        return fault.into_response();
    }
    let Some(origin) = issuer(&app, &headers, &uri) else {
        return nothing();
    };
    match asked(&app, &uri, &origin) {
        Ok((client, asked)) => oauth_page::form(&client, &asked, None),
        Err(refused) => not_asked(&refused),
    }
}

/// Signs a user in and sends them back to the client with a code.
pub(crate) async fn sign_in(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    uri: Uri,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    let Some(origin) = issuer(&app, &headers, &uri) else {
        return nothing();
    };
    let (client, asked) = match asked(&app, &uri, &origin) {
        Ok(both) => both,
        Err(refused) => return not_asked(&refused),
    };
    let given = match form(&app, &headers, body).await {
        Ok(given) => given,
        Err(fault) => return unread(&fault.error()),
    };
    let (name, password) = (of(&given, "username"), of(&given, "password"));
    let reply = match auth::sign_in(&app, name, password, meta).await {
        Ok(reply) => reply,
        Err(fault) => return again(&client, &asked, &fault.error()),
    };
    let Some(token) = reply.get("jwt").and_then(Value::as_str) else {
        return again(&client, &asked, &failure(&reply));
    };
    let expires = reply.get("jwt_expires").and_then(Value::as_str);
    let granted = Granted {
        asked: asked.kept(),
        token: token.to_owned(),
        expires: expires.unwrap_or_default().to_owned(),
    };
    let code = app.codes.put(granted, Instant::now());
    oauth_page::back(&asked.back("code", &code))
}

/// Why a form could not be read: that says nothing of the name and the password.
fn unread(error: &Error) -> Response {
    let status = match error.code() {
        ErrorCode::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        code if code.is_transient() => status_of(code),
        _ => StatusCode::BAD_REQUEST,
    };
    oauth_page::refusal(status, &error.message)
}

fn status_of(code: ErrorCode) -> StatusCode {
    StatusCode::from_u16(code.status()).unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
}

/// A token for a code.
pub(crate) async fn token(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    uri: Uri,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    let Some(origin) = issuer(&app, &headers, &uri) else {
        return nothing();
    };
    let outcome = async {
        app.pace.of_address(meta.address)?;
        form(&app, &headers, body).await
    };
    match outcome.await {
        Ok(given) => exchanged(&app, &given, &origin),
        Err(fault) => refused(fault, "invalid_request"),
    }
}

fn exchanged(app: &App, given: &Given, origin: &str) -> Response {
    if of(given, "grant_type") != "authorization_code" {
        return refusal("unsupported_grant_type", "a token is given for a code only");
    }
    if !is_for(given, origin) {
        return refusal("invalid_target", "tokens are for this system only");
    }
    // With anything wrong the code is used up all the same.
    let granted = app.codes.take(of(given, "code"), Instant::now());
    let Some(granted) = granted.filter(|granted| granted.asked.is_of(given)) else {
        let text = "the code is not known or is over, or client_id, redirect_uri or code_verifier is another one";
        return refusal("invalid_grant", text);
    };
    let mut answer = json!({"access_token": granted.token, "token_type": "Bearer"});
    if let Some(left) = seconds_left(&granted.expires) {
        answer["expires_in"] = json!(left);
    }
    kept_nowhere(json_response(StatusCode::OK, &answer))
}

fn seconds_left(expires: &str) -> Option<i64> {
    let now = clock::now();
    let until = expires.parse().unwrap_or(now);
    Some((until - now).num_seconds()).filter(|left| *left > 0)
}

/// Who the server is, by the address that the client came to; `None`: nobody needs a token here.
fn issuer(app: &App, headers: &HeaderMap, uri: &Uri) -> Option<String> {
    origin(app, headers, uri).filter(|_| !app.auth.open())
}

fn nothing() -> Response {
    (StatusCode::NOT_FOUND, "404: Not Found").into_response()
}

fn asked(app: &App, uri: &Uri, origin: &str) -> Result<(Client, Asked), Refused> {
    let given = fields(uri.query().unwrap_or_default());
    let given = given.ok_or(Refused::Here(
        "The address has a field twice or is not text.",
    ))?;
    let allows = |origin: &str| app.options.settings.sends_users_to(origin);
    Asked::read(&given, origin, allows)
}

fn not_asked(refused: &Refused) -> Response {
    match refused {
        Refused::Here(why) => oauth_page::refusal(StatusCode::BAD_REQUEST, why),
        Refused::Back(address) => oauth_page::back(address),
    }
}

/// The form of a body.
async fn form(app: &App, headers: &HeaderMap, body: HttpBody) -> Result<Given, RequestError> {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if media::essence(kind) != FORM {
        return Err(RequestError::BadMessage("the body must be a form"));
    }
    let (bytes, _received) = read::stranger_bytes(app, headers, body).await?;
    let given = std::str::from_utf8(&bytes).ok().and_then(fields);
    given.ok_or(RequestError::BadMessage(
        "the form has a field twice or is not text",
    ))
}

/// The fields of a query string or a form; `None`: one occurs twice, or is not text.
pub(super) fn fields(text: &str) -> Option<Given> {
    let mut given = Given::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if given.insert(decoded(name)?, decoded(value)?).is_some() {
            return None;
        }
    }
    Some(given)
}

/// Why a login gave no token.
fn failure(reply: &Body) -> Error {
    let text = |key: &str| {
        let text = reply.get("error").and_then(|error| error.get(key));
        text.and_then(Value::as_str).unwrap_or_default()
    };
    Error::typed(text("type"), text("message"))
}

/// The form once more. Which of name and password was wrong stays inside.
fn again(client: &Client, asked: &Asked, error: &Error) -> Response {
    if !error.code().is_transient() {
        let failed = (
            StatusCode::UNAUTHORIZED,
            "The name or the password is wrong.",
        );
        return oauth_page::form(client, asked, Some(failed));
    }
    let failed = (status_of(error.code()), error.message.as_str());
    let mut response = oauth_page::form(client, asked, Some(failed));
    let pause = auth::pause(&error.message);
    response.headers_mut().insert(header::RETRY_AFTER, pause);
    response
}

/// A refusal in the words of OAuth.
fn refusal(error: &str, description: &str) -> Response {
    refusal_of(StatusCode::BAD_REQUEST, error, description)
}

fn refusal_of(status: StatusCode, error: &str, description: &str) -> Response {
    let body = json!({"error": error, "error_description": description});
    kept_nowhere(json_response(status, &body))
}

/// The same of a request that could not be read.
fn refused(fault: RequestError, error: &str) -> Response {
    let has_own_status = matches!(
        fault,
        RequestError::TooLarge { .. } | RequestError::Slowed { .. }
    );
    if has_own_status {
        return fault.into_response();
    }
    let reason = fault.error();
    match reason.code().is_transient() {
        true => {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            refusal_of(status, "temporarily_unavailable", &reason.message)
        }
        false => refusal(error, &reason.message),
    }
}
