//! What surrounds every request: an id, a span, a trace context, and the guard against web pages. The query string is never logged: sockets carry tokens in it.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;
use uuid::Uuid;

use crate::auth::guard;
use crate::call::Meta;
use crate::connection::Peer;
use crate::error::{Failed, refusal};
use crate::state::Shared;

const REQUEST_ID: &str = "x-request-id";
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
    let says_status = request
        .headers()
        .get(ERROR_STATUS)
        .is_some_and(|value| value == "true");
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
    response
}

/// Turns web pages away when there is no other authentication, and from what everybody may do without a key.
pub(crate) async fn guard(State(app): State<Shared>, request: Request, next: Next) -> Response {
    if app.auth.open() && !guard::is_local(request.headers(), request.uri()) {
        return refusal(StatusCode::FORBIDDEN, "access denied");
    }
    let has_key = request.headers().contains_key(header::AUTHORIZATION);
    if request.method() == Method::POST && !has_key && guard::is_foreign_page(request.headers()) {
        return refusal(StatusCode::FORBIDDEN, "access denied");
    }
    next.run(request).await
}

fn meta(request: &Request) -> Meta {
    let (request_id, traceparent) = told(request.headers());
    Meta {
        request_id,
        traceparent,
        endpoint: "rest",
        local: local(request),
        address: request
            .extensions()
            .get::<Peer>()
            .map(|peer| peer.address.ip()),
    }
}

/// The id and the trace that a request comes with, or new ones.
pub(super) fn told(headers: &HeaderMap) -> (Arc<str>, Arc<str>) {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let request_id = text(REQUEST_ID)
        .filter(|id| is_id(id))
        .map_or_else(|| Uuid::new_v4().to_string().into(), Arc::from);
    let traceparent = text("traceparent")
        .filter(|context| is_traceparent(context))
        .map_or_else(fresh_traceparent, Arc::from);
    (request_id, traceparent)
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
    let told = [
        "origin",
        "forwarded",
        "x-forwarded-for",
        "x-real-ip",
        "via",
        "sec-fetch-site",
    ];
    let alone = request.version() > Version::HTTP_10
        && !told.iter().any(|name| headers.contains_key(*name));
    (alone && address.is_loopback() && guard::is_local(headers, request.uri())).then_some(address)
}

/// A new trace.
pub(crate) fn fresh_traceparent() -> Arc<str> {
    let trace = Uuid::new_v4().simple().to_string();
    let span = Uuid::new_v4().simple().to_string();
    format!("00-{trace}-{}-01", &span[..16]).into()
}

fn is_id(id: &str) -> bool {
    (1..=64).contains(&id.len())
        && id
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

fn is_traceparent(context: &str) -> bool {
    let parts: Vec<&str> = context.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [2, 32, 16, 2]
        && parts.iter().all(|part| {
            part.bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        })
        && parts[1].bytes().any(|b| b != b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_contexts_from_outside_are_checked() {
        assert!(is_id("abc-1.2_X"));
        assert!(!is_id("") && !is_id("a b") && !is_id(&"x".repeat(65)) && !is_id("a\n"));
        assert!(is_traceparent(
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        ));
        assert!(is_traceparent(&fresh_traceparent()));
        assert!(!is_traceparent("00-zz-00-01"));
    }
}
