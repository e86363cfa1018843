//! A running import: each frame becomes a record, and a clean close says that all of them are safe.

use std::sync::Arc;

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde_json::{Value, json};
use tg_mesh::Ask;
use tg_schemas::msg::Triples;
use tg_schemas::{Error, Topic};

use super::socket::too_big;
use crate::auth::Identity;
use crate::flows::{self, Flow};
use crate::scrub::scrub;
use crate::state::App;
use crate::translate::triples::import_frame;

/// Longest reason of a close frame.
const MAX_REASON: usize = 120;

/// Where the records of an import go, and for whom.
pub(super) struct Way {
    pub(super) topic: Topic,
    pub(super) flow: Arc<Flow>,
    pub(super) identity: Identity,
    pub(super) traceparent: Arc<str>,
    pub(super) ack: bool,
}

/// What one confirmed frame added.
struct Confirmed {
    triples: usize,
}

/// Reads frames until the client closes. Frames before a faulty one stand.
pub(super) async fn run(app: &App, mut socket: WebSocket, way: Way) {
    let mut waiting = FuturesUnordered::new();
    let (mut frames, mut counts) = (0_u64, Counts::default());
    let close = loop {
        let full = waiting.len() >= app.options.limits.import;
        let message = tokio::select! {
            biased;
            () = way.flow.stopped.cancelled() => break Some(reason(close_code::AWAY, &flows::stopped())),
            () = app.closing.cancelled() => break Some(closing()),
            Some(outcome) = waiting.next() => {
                if let Some(close) = counts.take(outcome, &mut socket, way.ack).await {
                    break Some(close);
                }
                continue;
            }
            message = socket.recv(), if !full => message,
        };
        let bytes = match message {
            Some(Ok(Message::Text(text))) => text.into(),
            Some(Ok(Message::Binary(bytes))) => bytes,
            Some(Ok(Message::Close(_))) | None => break None,
            Some(Ok(_)) => continue,
            Some(Err(fault)) => break too_big(fault),
        };
        frames += 1;
        match batch(&bytes) {
            Ok(batch) => waiting.push(write(app, &way, batch)),
            Err(error) => {
                let error = Error::typed(&error.kind, format!("frame {frames}: {}", error.message));
                break Some(reason(close_code::INVALID, &error));
            }
        }
    };
    // The close handshake is the client's only sign that everything arrived: first confirm, then answer.
    let mut close = close;
    while let Some(outcome) = waiting.next().await {
        let fault = counts.take(outcome, &mut socket, way.ack).await;
        close = close.or(fault);
    }
    match close {
        Some(close) => {
            let _ = socket.send(Message::Close(Some(close))).await;
            // Give the client the chance to read it.
            while let Some(Ok(_)) = socket.recv().await {}
        }
        None => while let Some(Ok(_)) = socket.recv().await {},
    }
    tracing::debug!(
        frames = counts.frames,
        triples = counts.triples,
        "import ended"
    );
}

fn batch(bytes: &[u8]) -> Result<Triples, Error> {
    let malformed = |why: &str| Error::new(tg_schemas::ErrorCode::BadRequest, why.to_owned());
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(body)) => import_frame(&body),
        Ok(_) => Err(malformed("must be an object")),
        Err(detail) => Err(malformed(&format!("invalid JSON: {detail}"))),
    }
}

async fn write(app: &App, way: &Way, batch: Triples) -> Result<Confirmed, Error> {
    let triples = batch.triples.len();
    let ask = Ask {
        epoch: way.flow.epoch,
        workspace: Some(way.flow.workspace.clone()),
        user_id: Some(way.identity.id.to_string()),
        traceparent: Some(way.traceparent.to_string()),
        cancel: app.closing.clone(),
        ..Ask::default()
    };
    app.mesh.record(&way.topic, &batch, ask).await?;
    Ok(Confirmed { triples })
}

#[derive(Default)]
struct Counts {
    frames: u64,
    triples: u64,
}

impl Counts {
    /// Counts a confirmation; a record that could not be written ends the import.
    async fn take(
        &mut self,
        outcome: Result<Confirmed, Error>,
        socket: &mut WebSocket,
        ack: bool,
    ) -> Option<CloseFrame> {
        let confirmed = match outcome {
            Ok(confirmed) => confirmed,
            Err(error) => return Some(reason(close_code::ERROR, &scrub(error))),
        };
        self.frames += 1;
        self.triples += confirmed.triples as u64;
        if ack {
            let frame = json!({"confirmed": {"frames": self.frames, "triples": self.triples}});
            let _ = socket.send(Message::Text(frame.to_string().into())).await;
        }
        None
    }
}

fn closing() -> CloseFrame {
    CloseFrame {
        code: close_code::AWAY,
        reason: "the gateway is closing".into(),
    }
}

/// A close frame with an error's text, cut to what a close frame can carry.
fn reason(code: u16, error: &Error) -> CloseFrame {
    let mut text = error.to_string();
    if text.len() > MAX_REASON {
        let cut = (0..=MAX_REASON - 3)
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0);
        text.truncate(cut);
        text.push('…');
    }
    CloseFrame {
        code,
        reason: text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_fit_into_a_close_frame() {
        let error = Error::typed("bad-request", "ü".repeat(200));
        let close = reason(close_code::INVALID, &error);
        assert!(close.reason.as_str().len() <= 123);
        assert!(close.reason.as_str().ends_with('…'));
    }

    #[test]
    fn noise_is_no_batch() {
        assert!(batch(b"\xff\xfe").is_err());
        assert_eq!(batch(b"3").unwrap_err().message, "must be an object");
        assert_eq!(batch(b"{}").unwrap_err().message, "metadata: is required");
    }
}
