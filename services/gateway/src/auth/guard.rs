//! Regime `none` trusts whoever is on this machine, not what runs in its browser: a web page can reach
//! loopback by its own origin, or by a name that it lets resolve to loopback. Both show in the headers.

use axum::http::{HeaderMap, Uri, header};

/// Whether a request can only come from a program on this machine, or from a page it serves itself.
pub(crate) fn is_local(headers: &HeaderMap, uri: &Uri) -> bool {
    let text = |name| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap_or("?").to_ascii_lowercase())
    };
    let host = text(header::HOST).or_else(|| uri.authority().map(|one| one.to_string()));
    let Some(host) = host.filter(|host| is_loopback_name(host)) else {
        return false;
    };
    if headers.get_all(header::HOST).iter().count() > 1 {
        return false;
    }
    match text(header::ORIGIN) {
        None => true,
        Some(origin) => origin
            .split_once("://")
            .is_some_and(|(scheme, rest)| matches!(scheme, "http" | "https") && rest == host),
    }
}

/// `localhost`, `127.0.0.1` or `[::1]`, with or without a port.
fn is_loopback_name(host: &str) -> bool {
    ["localhost", "127.0.0.1", "[::1]"].iter().any(|name| {
        host.strip_prefix(name).is_some_and(|rest| {
            rest.is_empty()
                || rest
                    .strip_prefix(':')
                    .is_some_and(|port| port.parse::<u16>().is_ok())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn local(host: Option<&str>, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in [(header::HOST, host), (header::ORIGIN, origin)] {
            if let Some(value) = value {
                headers.insert(name, HeaderValue::from_str(value).unwrap());
            }
        }
        is_local(&headers, &Uri::from_static("/x"))
    }

    #[test]
    fn programs_here_pass_and_pages_from_elsewhere_do_not() {
        assert!(local(Some("localhost:8888"), None));
        assert!(local(Some("127.0.0.1:8888"), None));
        assert!(local(Some("[::1]:8888"), None));
        assert!(local(Some("localhost:8888"), Some("http://localhost:8888")));
        assert!(!local(None, None));
        assert!(!local(Some("evil.example:8888"), None));
        assert!(!local(Some("localhost.evil.example"), None));
        assert!(!local(Some("127.0.0.1.evil.example"), None));
        assert!(!local(Some("localhost:8888"), Some("http://evil.example")));
        assert!(!local(
            Some("localhost:8888"),
            Some("http://localhost:3000")
        ));
        assert!(!local(Some("localhost:8888"), Some("null")));
    }
}
