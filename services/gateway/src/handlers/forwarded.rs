//! What a proxy in front says of how its client came. It goes into the answer to the same client and nowhere else: any client can
//! write these headers itself.

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::Response;

/// The scheme that the client spoke to the proxy.
const PROTO: &str = "x-forwarded-proto";
/// The host that the client named, where the proxy names another one.
const HOST: &str = "x-forwarded-host";

/// Whether a proxy says that its client speaks TLS to it.
pub(super) fn is_secure(headers: &HeaderMap) -> bool {
    first(headers, PROTO).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"))
}

/// The host that the client named.
pub(super) fn host(headers: &HeaderMap, uri: &Uri) -> Option<Authority> {
    let named = first(headers, HOST).or_else(|| first(headers, header::HOST.as_str()));
    match named {
        Some(host) => host.parse().ok(),
        None => uri.authority().cloned(),
    }
}

/// An answer that repeats how its client came: that holds for nobody else, so no cache on the way keeps it.
pub(super) fn kept_nowhere(mut response: Response) -> Response {
    let kept = HeaderValue::from_static("no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, kept);
    response
}

/// The first value of a header: each proxy on the way appends its own.
fn first<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let told = headers.get(name)?.to_str().ok()?;
    let first = told.split(',').next()?.trim();
    (!first.is_empty()).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            let name = axum::http::HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        pairs.collect()
    }

    #[test]
    fn the_first_proxy_says_how_the_client_came() {
        for secure in ["https", "HTTPS", "https,http", "https, https"] {
            assert!(is_secure(&headers(&[(PROTO, secure)])), "{secure}");
        }
        for plain in ["http", "http, https", "", ", https", "httpsx"] {
            assert!(!is_secure(&headers(&[(PROTO, plain)])), "{plain}");
        }
        assert!(!is_secure(&HeaderMap::new()));
    }

    #[test]
    fn the_host_is_that_of_the_client_before_that_of_the_proxy() {
        let named = |pairs: &[(&'static str, &'static str)]| {
            let host = host(&headers(pairs), &Uri::from_static("http://b:1/mcp"));
            host.map(|host| host.to_string())
        };
        let inner = ("host", "10.0.0.1:8888");
        assert_eq!(named(&[inner]).as_deref(), Some("10.0.0.1:8888"));
        let both = named(&[inner, (HOST, "a.example, proxy")]);
        assert_eq!(both.as_deref(), Some("a.example"));
        assert_eq!(named(&[inner, (HOST, "a b")]), None);
        assert_eq!(named(&[]).as_deref(), Some("b:1"));
    }
}
