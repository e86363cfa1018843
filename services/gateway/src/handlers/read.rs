//! Reads requests: bearer tokens, bodies within their limit, JSON objects.

use std::time::Duration;

use axum::body::Body as HttpBody;
use axum::http::{HeaderMap, HeaderValue, header};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use serde_json::Value;

use crate::auth::Identity;
use crate::budget::{Reader, Reading};
use crate::call::Leave;
use crate::engine::translate::Body;
use crate::engine::translate::fields::fault;
use crate::error::RequestError;
use crate::received::{Received, STEP};
use crate::slow_body::{too_slow, within};
use crate::state::App;

/// The token of an `Authorization: Bearer …` header. The name of the scheme is of any case, as RFC 9110 has it.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let told = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = told.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("Bearer") && !token.is_empty()).then_some(token)
}

/// Where clients of some APIs put their key: Anthropic's and LangGraph's, and Azure's.
const KEY_HEADERS: [&str; 2] = ["x-api-key", "api-key"];

/// A bearer token, else the key in a header of its own.
pub(super) fn key(headers: &HeaderMap) -> Option<&str> {
    let of_its_own = |name: &&str| {
        let told = headers.get(*name)?.to_str().ok()?.trim();
        // Some write the scheme of the other header there, too.
        let key = match told.split_once(' ') {
            Some((scheme, key)) if scheme.eq_ignore_ascii_case("Bearer") => key.trim(),
            _ => told,
        };
        (!key.is_empty()).then_some(key)
    };
    bearer(headers).or_else(|| KEY_HEADERS.iter().find_map(of_its_own))
}

/// Whether a header brings a key. A page of another origin adds none of them without asking first.
pub(super) fn names_key(headers: &HeaderMap) -> bool {
    headers.contains_key(header::AUTHORIZATION)
        || KEY_HEADERS.iter().any(|name| headers.contains_key(*name))
}

/// A JSON object, read when there is memory for it; it counts while that is held. Strangers send little.
pub(super) async fn body(
    app: &App,
    headers: &HeaderMap,
    body: HttpBody,
    known: Option<&Identity>,
) -> Result<(Body, Reading), RequestError> {
    body_of(app, headers, body, known, usize::MAX).await
}

/// The same, of at most so many bytes.
pub(super) async fn body_of(
    app: &App,
    headers: &HeaderMap,
    body: HttpBody,
    known: Option<&Identity>,
    most: usize,
) -> Result<(Body, Reading), RequestError> {
    let reader = known.map_or_else(Reader::stranger, Reader::known);
    let (bytes, _received) = bytes(app, headers, body, known.is_some(), &reader, most).await?;
    let (body, reading) = app.budget.read(&reader, bytes, object).await?;
    let body = body.map_err(|fault| match fault {
        RequestError::InvalidJson(_) if is_form_of_files(headers) => {
            RequestError::BadMessage(FORM_OF_FILES)
        }
        fault => fault,
    });
    Ok((body?, reading))
}

/// What a body of messages is.
pub(super) enum Sent {
    /// One message.
    One(Body),
    /// A list.
    Several(Vec<Value>),
}

/// One message of somebody who is known, or a list, of at most so many bytes; it counts while that is held.
pub(super) async fn messages_of(
    app: &App,
    headers: &HeaderMap,
    body: HttpBody,
    known: &Identity,
    most: usize,
) -> Result<(Sent, Reading), RequestError> {
    let reader = Reader::known(known);
    let (bytes, _received) = bytes(app, headers, body, true, &reader, most).await?;
    let (sent, reading) = app.budget.read(&reader, bytes, sent).await?;
    Ok((sent?, reading))
}

/// The bytes of a body of somebody who is known, at most so many, as they are; they count while that is held.
pub(super) async fn known_bytes(
    app: &App,
    headers: &HeaderMap,
    body: HttpBody,
    identity: &Identity,
    most: usize,
) -> Result<(Bytes, Received), RequestError> {
    let reader = Reader::known(identity);
    bytes(app, headers, body, true, &reader, most).await
}

/// The same of somebody who is not known.
pub(super) async fn stranger_bytes(
    app: &App,
    headers: &HeaderMap,
    body: HttpBody,
) -> Result<(Bytes, Received), RequestError> {
    bytes(app, headers, body, false, &Reader::stranger(), usize::MAX).await
}

/// The bytes of a body, at most the limit, with what they count.
async fn bytes(
    app: &App,
    headers: &HeaderMap,
    body: HttpBody,
    known: bool,
    reader: &Reader,
    most: usize,
) -> Result<(Bytes, Received), RequestError> {
    let limits = &app.options.settings;
    let limit = match known {
        // What is counted is up to a step more than has come.
        true => limits
            .body_bytes
            .min(app.budget.largest_body().saturating_sub(STEP)),
        false => limits.stranger_bytes.min(limits.body_bytes),
    };
    let limit = limit.min(most);
    if is_encoded(headers) {
        return Err(RequestError::BadMessage(ENCODED));
    }
    let too_large = || RequestError::TooLarge { limit };
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    let announced = announced.and_then(|length| usize::try_from(length).ok());
    let mut received = Received::new(&app.budget, reader.clone(), announced);
    let body = match known {
        true => body,
        false => within(body, limits.stranger_time()),
    };
    let mut stream = body.into_data_stream();
    let mut all = BytesMut::new();
    while let Some(piece) = stream.next().await {
        let piece = piece.map_err(|fault| match too_slow(&fault) {
            true => RequestError::BadMessage("the body arrives too slowly"),
            false => RequestError::BadMessage("the body is incomplete"),
        })?;
        if all.len() + piece.len() > limit {
            return Err(too_large());
        }
        received.hold(all.len() + piece.len())?;
        all.extend_from_slice(&piece);
    }
    Ok((all.freeze(), received))
}

/// Why a body that is compressed is not read. A compressor makes much of little, and what is read is bounded before.
const ENCODED: &str = "the body is compressed; send it without Content-Encoding";

fn is_encoded(headers: &HeaderMap) -> bool {
    let encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    let mut encodings = encodings.map(|encoding| encoding.as_bytes().trim_ascii());
    // Some clients write the encoding of the text here.
    let plain: [&[u8]; 4] = [b"", b"identity", b"utf-8", b"utf8"];
    encodings.any(|encoding| {
        plain
            .iter()
            .all(|plain| !encoding.eq_ignore_ascii_case(plain))
    })
}

/// Why a form of files is not read, as `curl -F` and browsers send it.
const FORM_OF_FILES: &str =
    "the body is a form of files (multipart); send JSON, with a file as base64 in its field";

fn is_form_of_files(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .map(|kind| kind.as_bytes());
    let start = kind.and_then(|kind| kind.get(..MULTIPART.len()));
    start.is_some_and(|start| start.eq_ignore_ascii_case(MULTIPART))
}

const MULTIPART: &[u8] = b"multipart/";

/// What some editors and shells write before a text in UTF-8.
pub(super) const MARK: &[u8] = b"\xef\xbb\xbf";

/// A JSON object.
fn object(bytes: &[u8]) -> Result<Body, RequestError> {
    match sent(bytes)? {
        Sent::One(body) => Ok(body),
        Sent::Several(_) => Err(RequestError::NotAnObject),
    }
}

/// A JSON object, or a list.
fn sent(bytes: &[u8]) -> Result<Sent, RequestError> {
    match serde_json::from_slice(bytes.strip_prefix(MARK).unwrap_or(bytes)) {
        Ok(Value::Object(body)) => Ok(Sent::One(body)),
        Ok(Value::Array(list)) => Ok(Sent::Several(list)),
        Ok(_) => Err(RequestError::NotAnObject),
        Err(detail) => Err(RequestError::InvalidJson(detail.to_string())),
    }
}

/// Longest deadline a caller may name, in seconds.
pub(super) const MAX_TIMEOUT: i64 = 3600;

/// A deadline in seconds; 0 is none.
pub(super) fn seconds(field: &str, seconds: i64) -> Result<Option<Duration>, RequestError> {
    match seconds {
        0 => Ok(None),
        1..=MAX_TIMEOUT => Ok(Some(Duration::from_secs(seconds.unsigned_abs()))),
        _ => Err(fault(field, "must be from 1 to 3600 seconds").into()),
    }
}

/// The deadline of an `X-Timeout` header.
pub(super) fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, RequestError> {
    let Some(value) = headers.get("x-timeout") else {
        return Ok(None);
    };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    seconds("x-timeout", number.unwrap_or(-1))
}

/// Longest time that a run may wait for its caller, in seconds.
const MAX_GRACE: i64 = 3600;

const ON_DISCONNECT: &str = "x-on-disconnect";
const DETACH: &str = "x-detach";

/// What is to become of the work without its caller, as the header `X-On-Disconnect` says, else `X-Detach`.
pub(super) fn leave(headers: &HeaderMap) -> Result<Leave, RequestError> {
    if let Some(value) = only(headers, ON_DISCONNECT)? {
        return on_disconnect(ON_DISCONNECT, value.to_str().unwrap_or_default());
    }
    match only(headers, DETACH)?.map(|value| value.to_str()) {
        None | Some(Ok("false")) => Ok(Leave::Cancel),
        Some(Ok("true")) => Ok(Leave::Detach),
        Some(_) => Err(fault(DETACH, "must be true or false").into()),
    }
}

/// A header that may come once: of two that differ nobody knows which one the client means.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a HeaderValue>, RequestError> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(fault(name, "must not be there twice").into()),
    }
}

/// Refuses the header, whatever it says, for endpoints where it decides nothing, and says why.
pub(super) fn must_not_say(headers: &HeaderMap, why: &str) -> Result<(), RequestError> {
    if headers.contains_key(ON_DISCONNECT) {
        let why = format!("must be left out at this endpoint: {why}");
        return Err(fault(ON_DISCONNECT, &why).into());
    }
    must_not_detach(headers)
}

/// Refuses headers by which work would go on without its caller, for endpoints that do not read them.
pub(super) fn must_not_detach(headers: &HeaderMap) -> Result<(), RequestError> {
    let (field, only) = match headers.contains_key(ON_DISCONNECT) {
        true => (ON_DISCONNECT, "cancel"),
        false => (DETACH, "false"),
    };
    match leave(headers)? {
        Leave::Cancel => Ok(()),
        Leave::Detach | Leave::Grace(_) => {
            let why = format!("must be {only} at this endpoint, or left out");
            Err(fault(field, &why).into())
        }
    }
}

/// Refuses words that the events of an operation do not know: `grace`, and `cancel` where the turn goes on anyway.
pub(super) fn may_detach(headers: &HeaderMap, goes_on: bool) -> Result<(), RequestError> {
    let words = match goes_on {
        true => "detach",
        false => "cancel or detach",
    };
    match leave(headers)? {
        Leave::Detach => Ok(()),
        Leave::Cancel if !goes_on || !headers.contains_key(ON_DISCONNECT) => Ok(()),
        Leave::Cancel | Leave::Grace(_) => {
            let why = format!("must be {words} at this endpoint, or left out");
            Err(fault(ON_DISCONNECT, &why).into())
        }
    }
}

/// The same as a text.
pub(super) fn on_disconnect(field: &str, text: &str) -> Result<Leave, RequestError> {
    let grace = text.strip_prefix("grace=").map(str::parse);
    match (text, grace) {
        ("cancel", _) => Ok(Leave::Cancel),
        ("detach", _) => Ok(Leave::Detach),
        (_, Some(Ok(seconds @ 1..=MAX_GRACE))) => Ok(Leave::Grace(seconds)),
        _ => {
            let why = "must be cancel, detach or grace=<seconds> from 1 to 3600";
            Err(fault(field, why).into())
        }
    }
}

/// Where a stream is joined again, as the header `Last-Event-ID` says.
pub(super) fn last_event(headers: &HeaderMap) -> Result<Option<Body>, RequestError> {
    let told = headers.get("last-event-id").map(|value| value.to_str());
    // Some clients send the header before the first event, too.
    let told = told.filter(|told| !told.as_ref().is_ok_and(|text| text.is_empty()));
    let Some(value) = told else {
        return Ok(None);
    };
    let place = value.ok().and_then(|text| text.rsplit_once(':'));
    let place = place.and_then(|(run, offset)| Some((run, offset.parse::<u64>().ok()?)));
    match place {
        Some((run, offset)) if !run.is_empty() => {
            Ok(Some(crate::rejoin::request(run, Some(offset))))
        }
        _ => Err(fault("last-event-id", "must be the id of an event of a run").into()),
    }
}

/// The explicit workspace of a body.
pub(super) fn workspace(body: &Body) -> Result<Option<String>, RequestError> {
    Ok(crate::engine::translate::Fields::new(body).opt_text("workspace")?)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    #[test]
    fn the_scheme_is_bearer_in_any_case() {
        let token = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_static(text));
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(token("Bearer tg_x"), Some("tg_x".into()));
        assert_eq!(token("bearer tg_x"), Some("tg_x".into()));
        assert_eq!(token("BEARER  tg_x"), Some("tg_x".into()));
        assert_eq!(token("Bearertg_x"), None);
        assert_eq!(token("Bearer "), None);
        assert_eq!(token("Basic x"), None);
    }

    #[test]
    fn a_key_comes_in_each_of_its_headers_and_an_empty_token_is_none() {
        let headers = |pairs: &[(&'static str, &'static str)]| -> HeaderMap {
            let pairs = pairs.iter().map(|(name, value)| {
                let name = axum::http::HeaderName::from_static(name);
                (name, HeaderValue::from_static(value))
            });
            pairs.collect()
        };
        let of = |pairs: &[(&'static str, &'static str)]| key(&headers(pairs)).map(str::to_owned);
        let empty = ("authorization", "Bearer ");
        assert_eq!(of(&[("api-key", "tg_a")]), Some("tg_a".into()));
        assert_eq!(of(&[empty, ("x-api-key", "tg_x")]), Some("tg_x".into()));
        assert_eq!(
            of(&[("x-api-key", " "), ("api-key", "tg_a")]),
            Some("tg_a".into())
        );
        assert_eq!(
            of(&[("authorization", "Bearer tg_b"), ("api-key", "tg_a")]),
            Some("tg_b".into())
        );
        assert_eq!(of(&[("x-api-key", "Bearer tg_x")]), Some("tg_x".into()));
        assert_eq!(of(&[empty]), None);
        assert!(names_key(&headers(&[("api-key", "tg_a")])) && names_key(&headers(&[empty])));
        assert!(!names_key(&headers(&[("accept", "*/*")])));
    }

    #[test]
    fn a_body_that_is_compressed_is_known_by_its_header() {
        let encoded = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(text));
            is_encoded(&headers)
        };
        assert!(encoded("zstd") && encoded("gzip"));
        assert!(
            !encoded("Identity")
                && !encoded("UTF-8")
                && !encoded("")
                && !is_encoded(&HeaderMap::new())
        );
    }

    #[test]
    fn deadlines_are_bounded() {
        assert_eq!(seconds("t", 0), Ok(None));
        assert_eq!(seconds("t", 30), Ok(Some(Duration::from_secs(30))));
        for wrong in [-1, 3601] {
            assert!(seconds("t", wrong).is_err());
        }
        let mut headers = HeaderMap::new();
        headers.insert("x-timeout", HeaderValue::from_static("soon"));
        headers.insert("x-detach", HeaderValue::from_static("yes"));
        assert!(timeout(&headers).is_err());
        assert!(leave(&headers).is_err());
    }

    #[test]
    fn what_becomes_of_work_without_its_caller_is_said_in_one_word() {
        let read = |text: &str| on_disconnect("f", text);
        assert_eq!(read("cancel"), Ok(Leave::Cancel));
        assert_eq!(read("detach"), Ok(Leave::Detach));
        assert_eq!(read("grace=30"), Ok(Leave::Grace(30)));
        for wrong in ["", "grace", "grace=", "grace=0", "grace=3601", "finish"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let mut headers = HeaderMap::new();
        headers.insert("x-detach", HeaderValue::from_static("true"));
        assert_eq!(leave(&headers), Ok(Leave::Detach));
        assert!(must_not_detach(&headers).is_err());
        headers.insert("x-on-disconnect", HeaderValue::from_static("cancel"));
        assert_eq!(leave(&headers), Ok(Leave::Cancel));
        assert_eq!(must_not_detach(&headers), Ok(()));
        assert_eq!(must_not_detach(&HeaderMap::new()), Ok(()));
        assert!(must_not_say(&headers, "why").is_err());
        assert_eq!(must_not_say(&HeaderMap::new(), "why"), Ok(()));
        // The first of two says nothing of what the client means.
        headers.append("x-on-disconnect", HeaderValue::from_static("detach"));
        assert!(leave(&headers).is_err() && must_not_detach(&headers).is_err());
        let mut headers = HeaderMap::new();
        for word in ["false", "true"] {
            headers.append("x-detach", HeaderValue::from_static(word));
        }
        assert!(leave(&headers).is_err() && must_not_say(&headers, "why").is_err());
    }

    #[test]
    fn events_of_an_operation_may_be_left() {
        let may = |word: &'static str, goes_on| {
            let value = HeaderValue::from_static(word);
            let headers = HeaderMap::from_iter([(HeaderName::from_static(ON_DISCONNECT), value)]);
            may_detach(&headers, goes_on).is_ok()
        };
        for (word, ends, stays) in [
            ("detach", true, true),
            ("cancel", true, false),
            ("grace=9", false, false),
            ("finish", false, false),
        ] {
            assert_eq!((may(word, false), may(word, true)), (ends, stays), "{word}");
        }
        for goes_on in [false, true] {
            assert_eq!(may_detach(&HeaderMap::new(), goes_on), Ok(()));
        }
    }

    #[test]
    fn a_stream_is_joined_by_the_id_of_its_last_event() {
        let read = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("last-event-id", HeaderValue::from_static(text));
            last_event(&headers)
        };
        let body = read("r-1:7").unwrap().unwrap();
        assert_eq!((&body["run"], &body["offset"]), (&"r-1".into(), &7.into()));
        for wrong in ["7", ":7", "r:", "r:-1"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(read(""), Ok(None));
        assert_eq!(last_event(&HeaderMap::new()), Ok(None));
    }

    #[test]
    fn a_form_of_files_is_known_by_its_type() {
        let of = |kind: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            is_form_of_files(&headers)
        };
        assert!(of("multipart/form-data; boundary=x") && of("Multipart/Form-Data"));
        for other in [
            "application/json",
            "multi",
            "application/x-www-form-urlencoded",
        ] {
            assert!(!of(other), "{other}");
        }
        assert!(!is_form_of_files(&HeaderMap::new()));
    }

    #[test]
    fn bodies_are_objects() {
        assert!(object(b"{\"a\": 1}").is_ok());
        assert!(object(b"\xef\xbb\xbf{\"a\": 1}").is_ok());
        assert_eq!(object(b"[1]"), Err(RequestError::NotAnObject));
        assert!(matches!(object(b"{"), Err(RequestError::InvalidJson(_))));
        assert!(matches!(
            object(&[0xff, 0xfe]),
            Err(RequestError::InvalidJson(_))
        ));
        let deep = "[".repeat(100_000);
        assert!(matches!(
            object(deep.as_bytes()),
            Err(RequestError::InvalidJson(_))
        ));
    }
}
