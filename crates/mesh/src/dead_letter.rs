//! **Dead letters**: what cannot be handled now becomes a dead letter, that is published, confirmed, to the flow service's one
//! durable queue, and only then acknowledged where it was.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tg_bus::{Envelope, Target};
use tg_rpc::clock;
use tg_schemas::codec::{self, ContentType};
use tg_schemas::msg::DeadLetter;
use tg_schemas::processors::fabric;
use tg_schemas::{Error, ErrorCode, Headers, Retry, Subscription, Topic, limits};
use tokio_util::sync::CancellationToken;

use crate::mesh::Mesh;
use crate::scope::InstanceScope;

/// Pauses between tries of a record: 1 s, doubling, at most 5 minutes.
fn pause(attempt: u32) -> Duration {
    tg_bus::pause::after(Duration::from_secs(1), attempt, Duration::from_secs(300))
}

/// Tries after which a record that keeps failing is left to people.
const MAX_ATTEMPTS: u32 = 16;

/// Why a record becomes a dead letter.
#[derive(Debug, Clone)]
pub(crate) enum Reason {
    /// To be tried again.
    Retry(Error, Option<Duration>),
    /// Will never work.
    Dead(Error),
    /// Of another epoch of its flow.
    Stale,
}

/// The system's topic for dead letters.
pub fn topic() -> Topic {
    subscription().topic
}

/// Its one reader.
pub fn subscription() -> Subscription {
    fabric::dead_letters()
}

/// Puts a record aside; `Ok` when the flow service's queue has it, with why if nobody will try it again.
///
/// `Busy` while the room of its workspace or flow is full: it stays where it is. A record that can never be dead-lettered
/// as it is becomes a dead letter with the beginning of its body, and an error in the log: it must not come
/// again for ever.
pub(crate) async fn dead_letter(
    mesh: &Mesh,
    of: &Subscription,
    scope: &InstanceScope,
    envelope: &Envelope,
    reason: Reason,
) -> Result<Option<Error>, Error> {
    let text = |id: Option<String>| id.unwrap_or_default();
    let workspace = text(scope.workspace.as_ref().map(ToString::to_string));
    let flow = text(scope.flow.as_ref().map(ToString::to_string));
    let room = mesh.config().workspace_key(&workspace);
    if mesh.presence().room_full(room.as_str(), &flow) {
        metrics::counter!("tg_records_held_back_total").increment(1);
        return Err(Error::new(ErrorCode::Busy, FULL));
    }
    let attempt = envelope.headers.attempt.unwrap_or(0);
    let (kind, error, due) = match reason {
        Reason::Retry(error, after) if attempt < MAX_ATTEMPTS => {
            let due = after.unwrap_or_default().max(pause(attempt));
            ("retry", error, due)
        }
        Reason::Retry(error, _) | Reason::Dead(error) => ("dead", error, Duration::ZERO),
        Reason::Stale => {
            let error = Error::typed("", "of another start of the flow");
            ("stale", error, Duration::ZERO)
        }
    };
    let mut headers = Headers::clone(&envelope.headers);
    headers.attempt = Some(attempt + 1);
    let mut record = DeadLetter {
        topic: of.topic.to_string(),
        subscription: of.name.clone(),
        reason: kind.to_owned(),
        detail: plain(&error.message, limits::DEAD_LETTER_DETAIL),
        kind: plain(&error.kind, limits::ERROR_KIND),
        due_ms: clock::millis().saturating_add(i64::try_from(due.as_millis()).unwrap_or(i64::MAX)),
        headers: kept_headers(headers),
        content_type: envelope.content_type.as_str().to_owned(),
        workspace,
        flow,
        ..DeadLetter::default()
    };
    let published = publish(mesh, &record, envelope.body.clone()).await;
    let Err(fault) = published else {
        metrics::counter!("tg_records_dead_lettered_total", "reason" => kind).increment(1);
        return Ok((kind == "dead").then_some(error));
    };
    // What does not pass, the bus will never take as it is.
    if fault.code().retry() == Retry::Passes {
        return Err(fault);
    }
    let size = envelope.body.len();
    tracing::error!(
        subscription = %of.name, workspace = %record.workspace, size, error = %fault,
        "a record cannot be dead-lettered as it is; its beginning is kept as a dead letter"
    );
    "dead".clone_into(&mut record.reason);
    record.detail = format!(
        "{}; only the beginning of the record's {size} bytes could be kept",
        plain(&error.message, limits::DEAD_LETTER_DETAIL / 2)
    );
    let beginning = envelope.body.slice(..size.min(limits::DEAD_LETTER_CUT));
    publish(mesh, &record, beginning).await?;
    metrics::counter!("tg_records_cut_total").increment(1);
    metrics::counter!("tg_records_dead_lettered_total", "reason" => "dead").increment(1);
    Ok(Some(Error::typed(&error.kind, record.detail)))
}

/// Why a record stays where it is.
const FULL: &str =
    "the quota of dead letters of its workspace or flow is full; replay or discard some";

/// Publishes a record to the flow service: its body as it is, what is said of it in a header.
async fn publish(mesh: &Mesh, record: &DeadLetter, body: Bytes) -> Result<(), Error> {
    let said = codec::encode(record, ContentType::Json)?;
    let envelope = Envelope {
        headers: Arc::new(Headers {
            // By it the flow service keeps a dead letter once that is delivered twice.
            id: Some(uuid::Uuid::new_v4().to_string()),
            from: Some(mesh.inbox().to_owned()),
            aside: Some(String::from_utf8_lossy(&said).into_owned()),
            ..Headers::default()
        }),
        content_type: ContentType::parse(&record.content_type),
        body,
        ..Envelope::default()
    };
    let none = CancellationToken::new();
    mesh.publish_record(&Target::Topic(topic()), envelope, true, &none)
        .await
}

/// The headers of a record as text; of those that came with too much, what a replay needs.
fn kept_headers(mut headers: Headers) -> String {
    let text = |headers: &Headers| serde_json::to_string(headers).unwrap_or_default();
    let whole = text(&headers);
    if whole.len() <= limits::DEAD_LETTER_HEADERS {
        return whole;
    }
    // Who waits for a receipt of one of many hears nothing; all else may fit.
    if headers.receipt.take().is_some() {
        return kept_headers(headers);
    }
    // As text: what is escaped is longer.
    let is_short = |value: &String| {
        serde_json::to_string(value).is_ok_and(|text| text.len() <= limits::DEAD_LETTER_HEADER)
    };
    let short = |value: Option<String>| value.filter(is_short);
    text(&Headers {
        id: short(headers.id),
        attempt: headers.attempt,
        workspace: short(headers.workspace),
        generation: headers.generation,
        collection: short(headers.collection),
        collection_generation: headers.collection_generation,
        epoch: headers.epoch,
        thread: short(headers.thread),
        schema: short(headers.schema),
        sections: short(headers.sections),
        // Two words: who replays it must not make something else of it.
        by_hand: headers.by_hand,
        policies: headers.policies,
        ..Headers::default()
    })
}

/// As [`cut`], with spaces in place of control characters, each of which would be six in JSON.
fn plain(text: &str, longest: usize) -> String {
    cut(text, longest).replace(char::is_control, " ")
}

/// A text, or the beginning of one that is longer.
fn cut(text: &str, longest: usize) -> &str {
    let mut ends = (0..=longest.min(text.len())).rev();
    let end = ends.find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_record_fits_into_its_header() {
        let long = "\u{1}".repeat(10_000);
        let headers = kept_headers(Headers {
            id: Some("x".repeat(600)),
            user_id: Some("\"".repeat(20_000)),
            epoch: Some(3),
            generation: Some(7),
            collection_generation: Some(8),
            ..Headers::default()
        });
        let kept: Headers = serde_json::from_str(&headers).unwrap();
        assert_eq!((kept.epoch, kept.user_id), (Some(3), None));
        let kept_of = (kept.generation, kept.collection_generation);
        assert_eq!(kept_of, (Some(7), Some(8)));
        assert_eq!(kept.id.unwrap().len(), 600);
        let whole = kept_headers(Headers {
            user_id: Some("\"".repeat(1_700)),
            ..Headers::default()
        });
        assert!(whole.len() > 3_400, "all of them");
        let record = DeadLetter {
            detail: plain(&long, limits::DEAD_LETTER_DETAIL),
            headers: whole,
            workspace: "w".repeat(93),
            flow: "f".repeat(93),
            topic: "t".repeat(255),
            subscription: "s".repeat(255),
            ..DeadLetter::default()
        };
        let said = codec::encode(&record, ContentType::Json).unwrap();
        let headers = Headers {
            from: Some("p".repeat(255)),
            id: Some(uuid::Uuid::new_v4().to_string()),
            aside: Some(String::from_utf8_lossy(&said).into_owned()),
            ..Headers::default()
        };
        assert!(headers.size() <= limits::HEADERS, "{}", headers.size());
        assert_eq!(cut("h\u{e4}h", 2), "h");
    }
}
