//! What surrounds every request: an id, a span, a trace context, and the guard against web pages. The query string is never logged: sockets carry tokens in it.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, Version, header};
use axum::middleware::Next;
use axum::response::Response;
use tg_mesh::telemetry::Context;
use tracing::Instrument;
use uuid::Uuid;

use crate::auth::guard;
use crate::call::Meta;
use crate::connection::Peer;
use crate::error::{Failed, RequestError};
use crate::handlers::cors::OfNamedPage;
use crate::handlers::{read, surface};
use crate::paths;
use crate::state::Shared;

const REQUEST_ID: &str = "x-request-id";
/// Longest id that a client may give its request.
const LONGEST_ID: usize = 128;
/// What every answer says: no page of another origin embeds it, and no browser takes it for anything but what it is called.
const CLOSED: [(&str, &str); 2] = [
    ("cross-origin-resource-policy", "same-origin"),
    ("x-content-type-options", "nosniff"),
];
/// `true`: errors of services have the status of their kind, too, not 200 as official clients expect.
const ERROR_STATUS: &str = "x-error-status";

/// Gives the request its id and span, and the response the id.
pub(crate) async fn trace(mut request: Request, next: Next) -> Response {
    let meta = meta(&request);
    let span = tracing::info_span!(
        "request",
        id = %meta.request_id,
        method = %request.method(),
        path = %request.uri().path(),
    );
    let id = HeaderValue::from_str(&meta.request_id).ok();
    let says_status = wants_status(request.headers());
    request.extensions_mut().insert(meta);
    let mut response = next.run(request).instrument(span.clone()).await;
    if let Some(failed) = response
        .extensions()
        .get::<Failed>()
        .filter(|_| says_status)
    {
        *response.status_mut() = failed.status();
    }
    tracing::debug!(parent: &span, status = response.status().as_u16(), "answered");
    if let Some(id) = id {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    for (name, value) in CLOSED {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}

/// Whether the client asks for the status of an error; `true` in any case, or `1`.
fn wants_status(headers: &HeaderMap) -> bool {
    let value = headers.get(ERROR_STATUS).map(HeaderValue::as_bytes);
    value.is_some_and(|value| value.eq_ignore_ascii_case(b"true") || value == b"1")
}

/// Turns web pages away when there is no other authentication, and from what everybody may do without a key.
pub(crate) async fn guard(State(app): State<Shared>, request: Request, next: Next) -> Response {
    // The operator trusts such a page as a program.
    let is_named = request.extensions().get::<OfNamedPage>().is_some();
    let is_local = match is_named {
        true => guard::is_by_own_name,
        false => guard::is_local,
    };
    if app.auth.open() && !is_local(request.headers(), request.uri()) {
        return denied(&request);
    }
    if is_named {
        return next.run(request).await;
    }
    // What needs no key must not come from pages of others. A socket says its key in a message, and has an origin.
    let has_key = read::names_key(request.headers());
    let names_itself = !app.auth.open() && (has_key || has_token(&request) || is_upgrade(&request));
    if !names_itself && guard::is_cross_site(request.headers()) && !is_linked(&request) {
        return denied(&request);
    }
    let is_foreign = match is_of_sign_in(&request) {
        true => guard::is_foreign_origin,
        false => guard::is_foreign_page,
    };
    if request.method() == Method::POST && !has_key && is_foreign(request.headers()) {
        return denied(&request);
    }
    next.run(request).await
}

/// Refuses a header that the endpoint would pass by, where a client relies on it: `X-On-Disconnect`.
pub(crate) async fn check_leave(request: Request, next: Next) -> Response {
    let (path, headers) = (request.uri().path(), request.headers());
    let asked = pattern(&request).filter(|_| request.method() == Method::POST);
    let goes_on = asked.is_some_and(paths::is_of_turn);
    let checked = if asked.is_some_and(paths::is_of_events) {
        read::may_detach(headers, goes_on)
    } else if goes_on {
        read::must_not_say(headers, "the turn goes on when its client has left")
    } else {
        surface::must_not_detach(path, headers)
    };
    match checked {
        Ok(()) => next.run(request).await,
        Err(error) => refused(&request, error),
    }
}

fn denied(request: &Request) -> Response {
    refused(request, RequestError::AccessDenied)
}

/// The refusal, in the form that errors have at this path.
fn refused(request: &Request, error: RequestError) -> Response {
    let meta = request.extensions().get::<Meta>();
    let id = meta.map_or("", |meta| &*meta.request_id);
    surface::refused(request.uri().path(), error, id)
}

/// Whether the address carries a key, where one is read from it.
fn has_token(request: &Request) -> bool {
    let query = request.uri().query().unwrap_or_default();
    let mut pairs = query.split('&');
    let given = pairs.any(|pair| {
        let token = pair.strip_prefix("token=");
        token.is_some_and(|token| !token.is_empty())
    });
    given && pattern(request).is_some_and(paths::is_bulk)
}

fn is_upgrade(request: &Request) -> bool {
    request.headers().contains_key(header::UPGRADE)
}

/// Whether it asks for something to which anybody may link: what was built into the program, and the page to which clients of
/// `/mcp` send their users, which shows nothing that its address does not say.
fn is_linked(request: &Request) -> bool {
    let is_shown = request.method() == Method::GET && is_of_sign_in(request);
    is_shown || pattern(request).is_some_and(paths::is_of_page)
}

/// Whether it is the page on which users sign in. It sends a form.
fn is_of_sign_in(request: &Request) -> bool {
    pattern(request) == Some(paths::AUTHORIZE)
}

fn pattern(request: &Request) -> Option<&str> {
    let matched = request.extensions().get::<MatchedPath>();
    matched.map(MatchedPath::as_str)
}

fn meta(request: &Request) -> Meta {
    let (given, context) = told(request.headers());
    let number: Arc<str> = Uuid::new_v4().simple().to_string().into();
    Meta {
        request_id: given.unwrap_or_else(|| number.clone()),
        number,
        begins: context.is_none(),
        traceparent: context.map_or_else(fresh_traceparent, |known| known.to_string().into()),
        endpoint: "rest",
        local: local(request),
        address: request
            .extensions()
            .get::<Peer>()
            .map(|peer| peer.address.ip()),
        translated: false,
    }
}

/// The id that a request comes with, and its place in a trace.
pub(super) fn told(headers: &HeaderMap) -> (Option<Arc<str>>, Option<Context>) {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let given = text(REQUEST_ID).filter(|id| is_id(id)).map(Arc::from);
    (given, text("traceparent").and_then(Context::parse))
}

/// The address of a program on this machine. A web page names its origin, or came by another name; what a proxy
/// passes on is of somebody else. HTTP/1.0 is what proxies speak to what stands behind them if not told otherwise.
///
/// A proxy on this machine that passes on bytes only makes everybody look local: behind one, the first key is to be made
/// at the terminal before the proxy starts, or with the one-time code.
fn local(request: &Request) -> Option<IpAddr> {
    let headers = request.headers();
    let peer = request.extensions().get::<Peer>()?;
    let address = peer.address.ip().to_canonical();
    let told = ["origin", "forwarded", "x-real-ip", "via", "sec-fetch-site"];
    let tells = |name: &str| told.contains(&name) || name.starts_with("x-forwarded-");
    let alone =
        request.version() > Version::HTTP_10 && !headers.keys().any(|name| tells(name.as_str()));
    (alone && address.is_loopback() && guard::is_local(headers, request.uri())).then_some(address)
}

/// A new trace. Whether it is recorded is decided with its first span.
pub(crate) fn fresh_traceparent() -> Arc<str> {
    Context::fresh().to_string().into()
}

fn is_id(id: &str) -> bool {
    (1..=LONGEST_ID).contains(&id.len())
        && id
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    #[test]
    fn a_client_asks_for_the_status_in_any_case() {
        let asks = |value: &'static str| {
            let value = HeaderValue::from_static(value);
            wants_status(&HeaderMap::from_iter([(
                HeaderName::from_static(ERROR_STATUS),
                value,
            )]))
        };
        assert!(asks("true") && asks("True") && asks("1"));
        assert!(!asks("false") && !asks("0") && !asks("") && !wants_status(&HeaderMap::new()));
    }

    #[test]
    fn ids_from_outside_are_checked() {
        assert!(is_id("abc-1.2_X"));
        assert!(!is_id("") && !is_id("a b") && !is_id("a\n"));
        assert!(is_id(&"x".repeat(LONGEST_ID)) && !is_id(&"x".repeat(LONGEST_ID + 1)));
    }
}
