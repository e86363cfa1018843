//! Web pages of origins that the operator names may ask the endpoints of other programs' clients. Their browsers ask first, and let
//! them read an answer that says so. Where no origin is named, nothing here says anything.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::spelling::is_below;
use crate::state::Shared;

/// What such pages may ask.
const SURFACES: [&str; 7] = [
    "/v1",
    "/langgraph",
    "/mcp",
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-authorization-server",
    // Not the page between them, on which a user types a password.
    "/oauth/register",
    "/oauth/token",
];
const METHODS: &str = "GET, POST, PUT, PATCH, DELETE";
/// Headers of an answer that a page reads beside those that each page does.
const SHOWN: &str = "content-location, mcp-session-id, retry-after, spass-cost-eur, spass-cost-source, spass-cost-sub-calls, spass-cost-usd, www-authenticate, x-request-id";
/// Seconds for which a browser does not ask again.
const REMEMBERED: &str = "600";

/// Marks a request of a page whose origin is named.
#[derive(Debug, Clone, Copy)]
pub(super) struct OfNamedPage;

/// Answers browsers that ask first, and says of other answers that the page may read them.
pub(crate) async fn allow(State(app): State<Shared>, mut request: Request, next: Next) -> Response {
    let settings = &app.options.settings;
    let path = request.uri().path();
    let is_open =
        !settings.cors_origins.is_empty() && SURFACES.iter().any(|surface| is_below(path, surface));
    if !is_open {
        return next.run(request).await;
    }
    let origin = request.headers().get(header::ORIGIN).cloned();
    let origin = origin.filter(|origin| {
        let origin = origin.to_str();
        origin.is_ok_and(|origin| settings.names_origin(origin))
    });
    let mut response = match &origin {
        Some(_) if asks_first(&request) => preflight(request.headers()),
        Some(_) => {
            request.extensions_mut().insert(OfNamedPage);
            next.run(request).await
        }
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let shown = HeaderValue::from_static(SHOWN);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, shown);
    }
    response
}

/// Whether a browser asks whether a page may send a request.
fn asks_first(request: &Request) -> bool {
    let headers = request.headers();
    request.method() == Method::OPTIONS
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to that. Which headers mean something depends on the endpoint, so a page may send those that it asks for.
fn preflight(asked: &HeaderMap) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (header::ACCESS_CONTROL_MAX_AGE, REMEMBERED),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Some(wanted) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    response
}
