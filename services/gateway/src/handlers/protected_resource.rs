//! `GET /.well-known/oauth-protected-resource`: what a client that came to `/mcp` without a key may know of it (RFC 9728). Keys
//! and tokens are those of the iam service; a client gets a token of its user at `/oauth` (see `oauth.rs`). Where nobody needs
//! one, there is no such document.

use axum::extract::{Extension, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::mcp_target::target;
use super::{forwarded, read};
use crate::call::Meta;
use crate::engine::mcp::tools::TOOLS;
use crate::error::json_response;
use crate::registry::Gate;
use crate::state::{App, Shared};

/// The endpoint that it is about.
const ENDPOINT: &str = "/mcp";
/// Where the document about it is.
const DOCUMENT: &str = "/.well-known/oauth-protected-resource/mcp";

/// The document.
pub(crate) async fn metadata(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    if let Err(fault) = app.pace.of_address(meta.address) {
        return fault.into_response();
    }
    let Some(origin) = origin(&app, &headers, &uri).filter(|_| !app.auth.open()) else {
        return (StatusCode::NOT_FOUND, "404: Not Found").into_response();
    };
    let document = json!({
        "resource": format!("{origin}{ENDPOINT}{}", query(&uri)),
        "resource_name": "Threadgraph",
        "resource_documentation": format!("{origin}/docs"),
        "authorization_servers": [origin],
        "bearer_methods_supported": ["header"],
        "scopes_supported": scopes(),
    });
    forwarded::kept_nowhere(json_response(StatusCode::OK, &document))
}

/// What a response says to whoever is not known: where that document is, and that the key or token is not good, where there was
/// one (RFC 6750).
pub(super) fn challenge(app: &App, headers: &HeaderMap, uri: &Uri) -> HeaderValue {
    let origin = origin(app, headers, uri);
    let query = query(uri);
    let error = match read::names_key(headers) {
        true => ", error=\"invalid_token\"",
        false => "",
    };
    let full = origin
        .map(|origin| format!("Bearer resource_metadata=\"{origin}{DOCUMENT}{query}\"{error}"));
    let full = full.and_then(|full| HeaderValue::try_from(full).ok());
    full.unwrap_or(HeaderValue::from_static("Bearer"))
}

/// The capabilities that the tools take, each once.
fn scopes() -> Vec<&'static str> {
    let gates = TOOLS.iter().filter_map(|tool| {
        let gate = target(tool, "").ok()?.gate();
        match gate {
            Gate::Needs(capability) => Some(capability),
            Gate::Public | Gate::Authenticated => None,
        }
    });
    let mut scopes: Vec<&str> = gates.collect();
    scopes.sort_unstable();
    scopes.dedup();
    scopes
}

/// The query of an address, with its question mark. It is part of what the resource is called: clients such as VS Code compare the
/// name in the document with the address that their user gave them, which may name a workspace.
fn query(uri: &Uri) -> String {
    let query = uri.query().filter(|query| !query.is_empty());
    // It stands within quotation marks.
    let query = query.filter(|query| !query.contains(['"', '\\']));
    query.map_or_else(String::new, |query| format!("?{query}"))
}

/// The address by which the client came, as it names it.
pub(super) fn origin(app: &App, headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let secure = app.certificate.is_some() || forwarded::is_secure(headers);
    named(&forwarded::host(headers, uri)?, secure)
}

fn named(host: &Authority, secure: bool) -> Option<String> {
    let scheme = if secure { "https" } else { "http" };
    let plain = !host.as_str().contains(['@', '"', '\\']);
    plain.then(|| format!("{scheme}://{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_and_a_host_and_no_more() {
        let of = |host: &str, secure| named(&host.parse().unwrap(), secure);
        assert_eq!(of("a:8888", false), Some("http://a:8888".to_owned()));
        assert_eq!(of("a.example", true), Some("https://a.example".to_owned()));
        assert_eq!(
            of("[::1]:8888", false),
            Some("http://[::1]:8888".to_owned())
        );
        assert_eq!(of("user@a", false), None);
    }

    #[test]
    fn a_query_that_stays_within_quotation_marks_is_kept() {
        let of = |uri: &'static str| query(&Uri::from_static(uri));
        assert_eq!(of("/mcp?workspace=a&flow=b%22"), "?workspace=a&flow=b%22");
        for without in ["/mcp", "/mcp?", "/mcp?a=\\"] {
            assert_eq!(of(without), "", "{without}");
        }
    }

    #[test]
    fn each_capability_of_a_tool_is_a_scope_once() {
        let scopes = scopes();
        assert!(scopes.contains(&"agent") && scopes.contains(&"documents:read"));
        assert!(scopes.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
