//! `GET /`, `/docs`, `/assets/…` and the descriptions of the endpoints: what was built into the binary, for everybody
//! who may reach the gateway. It holds no data; the page asks for these with its user's key as any client does.

use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, Response as Built, StatusCode, header};
use axum::response::Response;
use tg_console::{Asset, find};

use crate::error::refusal;

/// What a page may do: scripts and styles from here, data from here, no text that becomes markup or script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// What every answer says beside its content.
const HEADERS: &[(&str, &str)] = &[
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    (
        "permissions-policy",
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
    ("vary", "Accept-Encoding"),
];

/// The console.
pub(crate) async fn console(headers: HeaderMap) -> Response {
    asset("index.html", &headers)
}

/// The descriptions, to be read.
pub(crate) async fn docs(headers: HeaderMap) -> Response {
    asset("docs.html", &headers)
}

/// What both need.
pub(crate) async fn file(Path(name): Path<String>, headers: HeaderMap) -> Response {
    asset(&name, &headers)
}

/// The description of the REST endpoints.
pub(crate) async fn openapi(headers: HeaderMap) -> Response {
    asset("openapi.yaml", &headers)
}

/// The description of the sockets.
pub(crate) async fn asyncapi(headers: HeaderMap) -> Response {
    asset("asyncapi.yaml", &headers)
}

fn asset(name: &str, headers: &HeaderMap) -> Response {
    match find(name) {
        Some(asset) => respond(asset, headers),
        None => refusal(StatusCode::NOT_FOUND, "no such file"),
    }
}

fn respond(asset: &'static Asset, headers: &HeaderMap) -> Response {
    let told = |name| {
        let values = headers.get_all(name).iter();
        let values = values.filter_map(|value: &HeaderValue| value.to_str().ok());
        values.collect::<Vec<_>>().join(",")
    };
    let chosen = choose(asset, &told(header::ACCEPT_ENCODING));
    // Each form of a file is another entity.
    let tag = match chosen {
        Some((encoding, _)) => format!("{}-{encoding}\"", asset.tag.trim_end_matches('"')),
        None => asset.tag.to_owned(),
    };
    let fresh = match asset.is_forever() {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    let mut answer = Built::builder()
        .header(header::ETAG, &tag)
        .header(header::CACHE_CONTROL, fresh);
    for (name, value) in HEADERS {
        answer = answer.header(*name, *value);
    }
    if is_known(&told(header::IF_NONE_MATCH), &tag) {
        answer = answer.status(StatusCode::NOT_MODIFIED);
        return answer.body(Body::empty()).unwrap_or_default();
    }
    answer = answer.header(header::CONTENT_TYPE, asset.kind());
    let content = match chosen {
        Some((encoding, content)) => {
            answer = answer.header(header::CONTENT_ENCODING, encoding);
            Bytes::from_static(content)
        }
        None => Bytes::from_static(asset.plain()),
    };
    answer.body(Body::from(content)).unwrap_or_default()
}

/// The smallest form that the client takes; `None` says the file as it is.
fn choose(asset: &Asset, accepts: &str) -> Option<(&'static str, &'static [u8])> {
    let forms = [("br", asset.brotli), ("gzip", Some(asset.gzip))];
    forms.into_iter().find_map(|(encoding, content)| {
        let content = content.filter(|_| takes(accepts, encoding))?;
        Some((encoding, content))
    })
}

/// Whether `Accept-Encoding` names it with a weight that is not 0.
fn takes(accepts: &str, encoding: &str) -> bool {
    accepts.split(',').any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let named = parts
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case(encoding));
        let weight = parts.find_map(|part| part.strip_prefix("q="));
        named && weight.and_then(|weight| weight.parse().ok()) != Some(0.0)
    })
}

/// Whether `If-None-Match` names the tag; a weak one will do.
fn is_known(matches: &str, tag: &str) -> bool {
    let mut named = matches.split(',').map(str::trim);
    named.any(|one| one == "*" || one.trim_start_matches("W/") == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    static ASSET: Asset = Asset::new("app-AB12CD34.js", "\"1\"", Some(b"brotli"), b"gzip");

    fn chosen(accepts: &str) -> Option<&'static str> {
        choose(&ASSET, accepts).map(|(encoding, _)| encoding)
    }

    #[test]
    fn a_client_gets_the_smallest_form_that_it_takes() {
        assert_eq!(chosen("gzip, deflate, br"), Some("br"));
        assert_eq!(chosen("gzip;q=0.5, br;q=0"), Some("gzip"));
        assert_eq!(chosen("GZIP"), Some("gzip"));
        assert_eq!(chosen("gzip; q=0.000"), None);
        assert_eq!(chosen(""), None);
        assert_eq!(chosen("identity"), None);
    }

    #[tokio::test]
    async fn who_takes_nothing_compressed_gets_the_file_itself() {
        let asset = find("openapi.yaml").unwrap();
        let whole = respond(asset, &HeaderMap::new());
        assert!(!whole.headers().contains_key(header::CONTENT_ENCODING));
        let content = axum::body::to_bytes(whole.into_body(), usize::MAX).await;
        assert!(content.unwrap().starts_with(b"openapi:"));
    }

    #[test]
    fn a_tag_is_known_in_any_list() {
        assert!(is_known("\"a\", W/\"1\"", "\"1\""));
        assert!(is_known("*", "\"1\""));
        assert!(!is_known("\"1-br\"", "\"1\"") && !is_known("", "\"1\""));
    }

    #[tokio::test]
    async fn what_never_changes_is_kept_and_what_is_known_is_not_sent() {
        let mut headers = HeaderMap::new();
        let response = respond(&ASSET, &headers);
        let cache = &response.headers()[header::CACHE_CONTROL];
        assert!(cache.to_str().unwrap().contains("immutable"));
        assert_eq!(response.headers()["etag"], "\"1\"");
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("br"));
        headers.insert(header::IF_NONE_MATCH, HeaderValue::from_static("\"1-br\""));
        let response = respond(&ASSET, &headers);
        assert_eq!(response.status(), StatusCode::NOT_MODIFIED);
        assert!(!response.headers().contains_key(header::CONTENT_TYPE));
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    }
}
