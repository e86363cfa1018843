//! What needs no key is not for web pages of others: they name their origin, and a form of theirs is no JSON.
//!
//! Regime `none` trusts whoever is on this machine, not what runs in its browser: a web page can reach
//! loopback by its own origin, or by a name that it lets resolve to loopback. Both show in the headers.

use axum::http::{HeaderMap, Uri, header};

/// The text of a header in lower case.
fn lower(headers: &HeaderMap, name: header::HeaderName) -> Option<String> {
    let value = headers.get(name)?;
    Some(value.to_str().unwrap_or("?").to_ascii_lowercase())
}

/// The name of this machine by which a request reached it, if it is one that nobody can take.
fn own_name(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let host = lower(headers, header::HOST);
    let host = host.or_else(|| uri.authority().map(|one| one.to_string()));
    let is_alone = headers.get_all(header::HOST).iter().count() <= 1;
    host.filter(|host| is_alone && is_loopback_name(host))
}

/// Whether a request reached this machine by a name that no web page can let resolve to it.
pub(crate) fn is_by_own_name(headers: &HeaderMap, uri: &Uri) -> bool {
    own_name(headers, uri).is_some()
}

/// Whether a request can only come from a program on this machine, or from a page it serves itself.
pub(crate) fn is_local(headers: &HeaderMap, uri: &Uri) -> bool {
    let Some(host) = own_name(headers, uri) else {
        return false;
    };
    match lower(headers, header::ORIGIN) {
        None => true,
        Some(origin) => origin
            .split_once("://")
            .is_some_and(|(scheme, rest)| matches!(scheme, "http" | "https") && rest == host),
    }
}

/// Whether a browser says that a page of another origin caused the request: by a script, an image, a frame or a link. Such
/// a request may lack an origin, and how it ends tells the page something even where its answer stays hidden.
pub(crate) fn is_cross_site(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all("sec-fetch-site").iter();
    sites.any(|site| {
        let site = site.to_str().unwrap_or("?");
        let own = ["same-origin", "none"].iter();
        !own.into_iter().any(|one| site.eq_ignore_ascii_case(one))
    })
}

/// Whether a request comes from a web page that this host did not serve, or from a form.
pub(crate) fn is_foreign_page(headers: &HeaderMap) -> bool {
    let kind = lower(headers, header::CONTENT_TYPE);
    let is_json = kind.is_none_or(|kind| kind.starts_with("application/json"));
    let is_form = headers.contains_key(header::ORIGIN) && !is_json;
    is_form || is_foreign_origin(headers)
}

/// The same where this host serves a form.
pub(crate) fn is_foreign_origin(headers: &HeaderMap) -> bool {
    let cross = is_cross_site(headers);
    let Some(origin) = lower(headers, header::ORIGIN) else {
        return cross;
    };
    let own = lower(headers, header::HOST).is_some_and(|host| {
        origin
            .split_once("://")
            .is_some_and(|(scheme, rest)| matches!(scheme, "http" | "https") && rest == host)
    });
    cross || !own
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
    fn pages_of_others_and_forms_have_no_business_without_a_key() {
        let foreign = |pairs: &[(&'static str, &'static str)]| {
            let pairs = pairs.iter().map(|(name, value)| {
                let name = axum::http::HeaderName::from_static(name);
                (name, HeaderValue::from_static(value))
            });
            is_foreign_page(&pairs.collect())
        };
        let (host, origin) = (("host", "tg.example"), ("origin", "https://tg.example"));
        assert!(!foreign(&[host]));
        assert!(!foreign(&[host, origin]));
        assert!(!foreign(&[
            host,
            origin,
            ("content-type", "application/json")
        ]));
        assert!(foreign(&[host, origin, ("content-type", "text/plain")]));
        assert!(foreign(&[host, ("origin", "https://evil.example")]));
        assert!(foreign(&[host, ("origin", "null")]));
        assert!(foreign(&[host, ("sec-fetch-site", "cross-site")]));
    }

    #[test]
    fn a_browser_that_names_another_site_is_believed() {
        let cross = |sites: &[&'static str]| {
            let sites = sites.iter().map(|site| {
                let name = axum::http::HeaderName::from_static("sec-fetch-site");
                (name, HeaderValue::from_static(site))
            });
            let mut headers = HeaderMap::new();
            for (name, site) in sites {
                headers.append(name, site);
            }
            is_cross_site(&headers)
        };
        for own in [&[][..], &["same-origin"], &["none"], &["Same-Origin"]] {
            assert!(!cross(own), "{own:?}");
        }
        for other in [
            &["cross-site"][..],
            &["same-site"],
            &["CROSS-SITE"],
            &["none", "cross-site"],
            &[""],
        ] {
            assert!(cross(other), "{other:?}");
        }
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
