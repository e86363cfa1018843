//! An answer as server-sent events: one `data:` event per part in the envelope of the socket (without
//! an id), comments as signs of life, and an `end` event after the last part.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::{HeaderMap, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde_json::{Value, json};

use crate::ask::Part;
use crate::engine::translate::error_value;
use crate::running::Running;

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
pub(super) fn respond(running: Running, heartbeat: Duration) -> Response {
    let events = stream::unfold((running, false), |(mut running, ended)| async move {
        if ended {
            return None;
        }
        let (event, ended) = match running.next().await {
            Some(part) => (Event::default().data(envelope(part).to_string()), false),
            None => (Event::default().event("end").data("{}"), true),
        };
        Some((Ok::<_, Infallible>(event), (running, ended)))
    });
    Sse::new(events)
        .keep_alive(KeepAlive::new().interval(heartbeat).text("alive"))
        .into_response()
}

fn envelope(part: Part) -> Value {
    match part {
        Part::Body { body, last, .. } => {
            let mut frame = json!({"response": null, "complete": last});
            // Moved in: the macro would copy the whole tree.
            frame["response"] = Value::Object(body);
            frame
        }
        Part::Error(error) => json!({"error": error_value(&error), "complete": true}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

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
