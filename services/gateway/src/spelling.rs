//! Addresses as clients spell them: with a slash too many, with `/v1` twice or without it. Only addresses of the APIs of others are
//! corrected, as their clients build them from a base address that somebody typed. Never redirects: clients lose their key on the way.

use axum::http::Uri;
use axum::http::uri::PathAndQuery;

/// What begins an address that is corrected.
const SURFACES: [&str; 7] = [
    "/v1",
    "/a1",
    "/mcp",
    "/langgraph",
    "/api/v1/workspaces",
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-authorization-server",
];
/// The surface that some base addresses name twice, and others not at all.
const MODELS: &str = "/v1";
/// What clients ask for where their base address lacks `/v1`.
const BARE: [&str; 7] = [
    "/chat/completions",
    "/completions",
    "/messages",
    "/messages/count_tokens",
    "/responses",
    "/embeddings",
    "/models",
];

/// The address that is meant, where it is another one.
pub(crate) fn meant(uri: &Uri) -> Option<Uri> {
    let path = path(uri.path())?;
    let text = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(text).ok()?);
    Uri::from_parts(parts).ok()
}

fn path(path: &str) -> Option<String> {
    let odd = path.contains("//")
        || path.ends_with('/')
        || is_below(path, "/v1/v1")
        || BARE.contains(&path);
    if !odd {
        return None;
    }
    let mut meant = String::with_capacity(path.len() + MODELS.len());
    for part in path.split('/').filter(|part| !part.is_empty()) {
        meant.push('/');
        meant.push_str(part);
    }
    while is_below(&meant, "/v1/v1") {
        meant.drain(..MODELS.len());
    }
    if BARE.contains(&meant.as_str()) {
        meant.insert_str(0, MODELS);
    }
    let known = SURFACES.iter().any(|surface| is_below(&meant, surface));
    (known && meant != path).then_some(meant)
}

/// Whether a path is this one, or one below it.
pub(crate) fn is_below(path: &str, surface: &str) -> bool {
    let rest = path.strip_prefix(surface);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(spelled: &'static str) -> Option<String> {
        meant(&Uri::from_static(spelled)).map(|uri| uri.to_string())
    }

    #[test]
    fn addresses_are_corrected_as_clients_misspell_them() {
        for (spelled, meant) in [
            ("/v1/chat/completions/", "/v1/chat/completions"),
            ("/v1//chat/completions", "/v1/chat/completions"),
            ("//v1/models?limit=9", "/v1/models?limit=9"),
            ("/v1/models/", "/v1/models"),
            ("/v1/v1/messages?beta=true", "/v1/messages?beta=true"),
            ("/v1/v1/v1/models", "/v1/models"),
            ("/chat/completions", "/v1/chat/completions"),
            ("/completions", "/v1/completions"),
            ("/models/", "/v1/models"),
            ("/mcp/", "/mcp"),
            ("/langgraph/info/", "/langgraph/info"),
            ("/api/v1/workspaces/", "/api/v1/workspaces"),
            (
                "http://h:1/v1/models/?a=b%2Fc",
                "http://h:1/v1/models?a=b%2Fc",
            ),
        ] {
            assert_eq!(of(spelled).as_deref(), Some(meant), "{spelled}");
        }
    }

    #[test]
    fn other_addresses_stay_as_they_are() {
        for spelled in [
            "/",
            "/v1/models",
            "/v1/models/v1/v1",
            "/v1/v10",
            "/api/metrics/",
            "/api/v1/flow//service/agent",
            "/assets/",
            "/mcpx/",
            "/messages/batches",
            "*",
        ] {
            assert_eq!(of(spelled), None, "{spelled}");
        }
    }
}
