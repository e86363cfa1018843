//! An answer as server-sent events: one `data:` event per part in the envelope of the socket (without
//! an id), comments as signs of life, and an `end` event after the last part.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body as HttpBody;
use axum::http::{HeaderMap, HeaderName, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use http_body::Frame;
use http_body_util::StreamBody;
use serde::Serialize;
use serde_json::{Value, json};

use crate::ask::Part;
use crate::engine::translate::{PartBody, error_value};
use crate::running::{Place, Running};
use crate::sending::Outlet;

/// The last event.
const END: &[u8] = b"event: end\ndata: {}\n\n";
/// A comment, which clients pass over.
const ALIVE: &[u8] = b": ping\n\n";

/// Whether the caller asks for events.
pub(super) fn wanted(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|kind| {
            kind.trim()
                .to_ascii_lowercase()
                .starts_with("text/event-stream")
        })
}

/// Streams an answer. Dropping the response cancels the question.
pub(super) fn respond(running: Running, heartbeat: Duration, outlet: Outlet) -> Response {
    let events = stream::unfold(Some((running, outlet)), |rest| async {
        let (mut running, outlet) = rest?;
        let part = running.next().await;
        let more = part.is_some();
        let event = match part {
            None => Bytes::from_static(END),
            Some(part) => {
                let lane = running.lane.clone();
                let text = lane.run_long(part.is_long(), move || envelope(part)).await;
                let text = text.unwrap_or_else(|error| envelope(Part::Error(error)));
                data(&text, running.place())
            }
        };
        let event = outlet.hold(event).await;
        Some((event, more.then_some((running, outlet))))
    });
    kept_alive(events, heartbeat)
}

/// Events as they come, and a sign of life while the next one is waited for, be it made or be there no room for it.
pub(super) fn kept_alive(
    events: impl Stream<Item = Bytes> + Send + 'static,
    heartbeat: Duration,
) -> Response {
    let pieces = alive(events, heartbeat).map(Ok::<_, Infallible>);
    (HEADERS, HttpBody::from_stream(pieces)).into_response()
}

/// The same, with headers that are known at the end only (RFC 9110, 6.5). A client that did not say `TE: trailers` gets none.
pub(super) fn kept_alive_until(
    events: impl Stream<Item = Bytes> + Send + 'static,
    heartbeat: Duration,
    names: &'static str,
    trailers: impl FnOnce() -> HeaderMap + Send + 'static,
) -> Response {
    let pieces = alive(events, heartbeat).map(Frame::data);
    let frames = pieces.chain(stream::once(async { Frame::trailers(trailers()) }));
    let body = HttpBody::new(StreamBody::new(frames.map(Ok::<_, Infallible>)));
    (HEADERS, [(header::TRAILER, names)], body).into_response()
}

const HEADERS: [(HeaderName, &str); 3] = [
    (header::CONTENT_TYPE, "text/event-stream"),
    (header::CACHE_CONTROL, "no-cache"),
    // nginx holds events back otherwise until it has many.
    (HeaderName::from_static("x-accel-buffering"), "no"),
];

fn alive(
    events: impl Stream<Item = Bytes> + Send + 'static,
    heartbeat: Duration,
) -> impl Stream<Item = Bytes> + Send + 'static {
    stream::unfold(Box::pin(events), move |mut events| async move {
        let piece = match tokio::time::timeout(heartbeat, events.next()).await {
            Ok(event) => event?,
            Err(_) => Bytes::from_static(ALIVE),
        };
        Some((piece, events))
    })
}

/// An event, with its place in the run by which it can be joined again. JSON has no line ends outside of texts, and escapes them there: it is one line.
fn data(envelope: &str, place: Option<Place<'_>>) -> Bytes {
    Bytes::from(match place {
        Some(Place { run, offset }) => format!("id: {run}:{offset}\ndata: {envelope}\n\n"),
        None => format!("data: {envelope}\n\n"),
    })
}

/// A part of an answer, as it is written.
#[derive(Serialize)]
struct PartEvent<'a> {
    response: &'a PartBody,
    complete: bool,
    /// A client that reads only the envelope sees that the service failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Value>,
}

fn envelope(part: Part) -> String {
    match part {
        Part::Body { body, last, failed } => {
            let tree = failed.then(|| body.tree());
            let event = PartEvent {
                response: &body,
                complete: last,
                error: tree.as_ref().and_then(|tree| tree.get("error")),
            };
            // What has texts for keys can always be written.
            serde_json::to_string(&event).unwrap_or_default()
        }
        Part::Error(error) => json!({"error": error_value(&error), "complete": true}).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use tg_schemas::{Error, ErrorCode};

    #[test]
    fn an_error_of_a_service_is_in_the_envelope_too() {
        let part = |body: &Value, failed| {
            let body = body.as_object().expect("a body").clone();
            let last = true;
            let body = body.into();
            let written = envelope(Part::Body { body, last, failed });
            serde_json::from_str::<Value>(&written).expect("JSON")
        };
        let error = json!({"type": "llm-error", "message": "m"});
        let told = part(&json!({"error": error, "response": ""}), true);
        assert_eq!(told["error"], error);
        assert_eq!(told["response"]["error"], error);
        assert_eq!(
            envelope(Part::Error(Error::new(ErrorCode::Busy, "later"))),
            r#"{"error":{"type":"busy","message":"later"},"complete":true}"#
        );
        assert!(
            part(&json!({"response": "r"}), false)
                .get("error")
                .is_none()
        );
    }

    #[test]
    fn a_proxy_is_asked_not_to_hold_events_back() {
        let response = kept_alive(stream::empty(), Duration::from_secs(60));
        assert_eq!(response.headers()["x-accel-buffering"], "no");
    }

    #[test]
    fn events_are_wanted_only_by_their_media_type() {
        let accept = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(text));
            wanted(&headers)
        };
        assert!(accept("text/event-stream"));
        assert!(accept("application/json, Text/Event-Stream;q=0.9"));
        assert!(!accept("*/*") && !accept("application/json"));
        assert!(!wanted(&HeaderMap::new()));
    }
}
