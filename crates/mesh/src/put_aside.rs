//! What cannot be handled now is put aside: published, confirmed, to the flow service's one durable queue,
//! and only then acknowledged where it was.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tg_schemas::msg::PutAside;
use tg_schemas::processors::PUT_ASIDE_BASE;
use tg_schemas::{Class, Error, Subscription, Topic};

use crate::mesh::Mesh;
use crate::scope::Scope;
use tg_bus::Envelope;
use tg_rpc::Ask;
use tg_rpc::deadline::now_millis;

/// Pauses between tries of a record: 1 s, doubling, at most 5 minutes.
fn pause(attempt: u32) -> Duration {
    Duration::from_secs(1 << attempt.min(8)).min(Duration::from_secs(300))
}

/// Tries after which a record that keeps failing is left to people.
const MAX_ATTEMPTS: u32 = 16;

/// Why a record is put aside.
#[derive(Debug, Clone)]
pub(crate) enum Reason {
    /// To be tried again.
    Retry(Error, Option<Duration>),
    /// Will never work.
    Dead(Error),
    /// Of another epoch of its flow.
    Stale,
}

/// The system's topic for put-aside records.
pub fn topic() -> Topic {
    Topic::system(Class::Flow, PUT_ASIDE_BASE)
}

/// Its one reader.
pub fn subscription() -> Subscription {
    Subscription::service(topic(), "flow-svc")
}

/// Puts a record aside; `Ok` when the flow service's queue has it, with why if nobody will try it again.
pub(crate) async fn put_aside(
    mesh: &Mesh,
    of: &Subscription,
    scope: &Scope,
    envelope: &Envelope,
    reason: Reason,
) -> Result<Option<String>, Error> {
    let attempt = envelope.headers.attempt.unwrap_or(0);
    let (kind, detail, due) = match reason {
        Reason::Retry(error, after) if attempt < MAX_ATTEMPTS => (
            "retry",
            error.message,
            after.unwrap_or_default().max(pause(attempt)),
        ),
        Reason::Retry(error, _) | Reason::Dead(error) => ("dead", error.message, Duration::ZERO),
        Reason::Stale => (
            "stale",
            "of another start of the flow".to_owned(),
            Duration::ZERO,
        ),
    };
    metrics::counter!("tg_records_put_aside_total", "reason" => kind).increment(1);
    let dead = (kind == "dead").then(|| detail.clone());
    let mut headers = envelope.headers.clone();
    headers.attempt = Some(attempt + 1);
    let record = PutAside {
        topic: of.topic.to_string(),
        subscription: of.name.clone(),
        reason: kind.to_owned(),
        detail,
        due_ms: (now_millis() + due.as_millis() as u64) as i64,
        headers: serde_json::to_string(&headers).unwrap_or_default(),
        content_type: envelope.content_type.as_str().to_owned(),
        body: STANDARD.encode(&envelope.body),
        workspace: scope
            .workspace
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        flow: scope
            .flow
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        ..PutAside::default()
    };
    mesh.record(&topic(), &record, Ask::default()).await?;
    Ok(dead)
}
