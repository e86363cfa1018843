//! A running import socket: each frame becomes records, and a clean close says that all of them are safe.

use std::time::Duration;

use axum::body::Bytes;
use futures::{SinkExt, StreamExt};
use serde_json::Value;
use tg_schemas::Error;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::counts::Counts;
use super::heart::Heart;
use super::intake::{Control, Intake, Outcome, Way, control};
use super::narrow::FrameGate;
use super::socket::broken;
use super::upgrade::Socket;
use crate::flows;
use crate::state::App;

/// Longest reason of a close frame.
const MAX_REASON: usize = 120;

/// How long a client may take to answer a goodbye.
const GOODBYE: Duration = Duration::from_secs(10);

/// Reads frames until the client closes, or says that it is done. Frames before a faulty one stand.
pub(super) async fn run(app: &App, mut socket: Socket, gate: &FrameGate, mut way: Way) {
    let mut lapse = way.lapse.take();
    let mut heart = Heart::new(app.options.ping);
    let mut intake = Intake::new(app, &way);
    let skips = way.skips.unwrap_or(false);
    if way.settled && way.ack {
        // So the client knows that it will be told of each frame.
        say(&mut socket, &intake.counts.confirmed(way.kind)).await;
    }
    let close = loop {
        let room = intake.has_room();
        let message = tokio::select! {
            biased;
            () = way.flow.stopped.cancelled() => break Some(End::fault(CloseCode::Away, flows::stopped())),
            () = app.closing.cancelled() => break Some(End::closing()),
            error = &mut lapse => break Some(End::fault(CloseCode::Policy, error)),
            Some(outcome) = intake.next() => {
                if let Some(error) = settle(&mut intake, outcome, &mut socket).await {
                    break Some(End::fault(CloseCode::Error, error));
                }
                continue;
            }
            message = socket.next(), if room => message,
            () = heart.beat() => {
                let _ = socket.send(Message::Ping(Bytes::new())).await;
                continue;
            }
        };
        let bytes = match message {
            Some(Ok(Message::Text(text))) => text.into(),
            Some(Ok(Message::Binary(bytes))) => bytes,
            Some(Ok(Message::Close(_))) => break None,
            Some(Ok(_)) => continue,
            None => {
                intake.stop_waiting();
                break None;
            }
            Some(Err(fault)) => {
                intake.stop_waiting();
                break broken(&fault, gate).map(End::Frame);
            }
        };
        match control(&bytes) {
            None => {
                if let Err(error) = intake.take(bytes).await
                    && !skips
                {
                    break Some(End::fault(CloseCode::Invalid, error));
                }
            }
            Some(Control::Ignored) => {}
            Some(Control::Status) => say(&mut socket, &status(&intake, false)).await,
            Some(Control::End) => break Some(End::Done),
        }
    };
    // The close handshake is the client's only sign that everything arrived: first confirm, then answer.
    let mut close = close;
    while let Some(outcome) = intake.next().await {
        if let Some(error) = settle(&mut intake, outcome, &mut socket).await {
            close = close.or(Some(End::fault(CloseCode::Error, error)));
        }
    }
    if matches!(close, Some(End::Done)) {
        say(&mut socket, &status(&intake, true)).await;
    }
    if let Some(close) = close {
        let frame = close.frame(&intake.counts);
        let _ = socket.send(Message::Close(Some(frame))).await;
    }
    // Give the client the chance to read it.
    let read = async { while let Some(Ok(_)) = socket.next().await {} };
    let _ = tokio::time::timeout(GOODBYE, read).await;
    let counts = &intake.counts;
    tracing::debug!(
        kind = way.kind.name(),
        received = counts.received,
        sent = counts.sent,
        stored = counts.stored,
        failed = counts.failed,
        items = counts.items,
        "import ended"
    );
}

/// Counts what became of a frame, and tells it to those who asked to be told. Why the import goes no further.
async fn settle(intake: &mut Intake<'_>, outcome: Outcome, socket: &mut Socket) -> Option<Error> {
    let mut news = intake.settle(outcome);
    if intake.way().ack
        && let Some(frame) = news.tell.take()
    {
        say(socket, &frame).await;
    }
    intake.stops(news, false)
}

fn status(intake: &Intake<'_>, complete: bool) -> Value {
    intake.counts.status(intake.way().kind, complete)
}

async fn say(socket: &mut Socket, frame: &Value) {
    // Who is gone is noticed by the next read.
    let _ = socket.send(Message::Text(frame.to_string().into())).await;
}

/// Why this side closes.
enum End {
    Frame(CloseFrame),
    RequestError(CloseCode, Error),
    /// The client said that it is done.
    Done,
}

impl End {
    fn fault(code: CloseCode, error: Error) -> Self {
        Self::RequestError(code, error)
    }

    fn closing() -> Self {
        Self::Frame(CloseFrame {
            code: CloseCode::Away,
            reason: "the gateway is closing".into(),
        })
    }

    fn frame(self, counts: &Counts) -> CloseFrame {
        match self {
            Self::Frame(frame) => frame,
            Self::RequestError(code, error) => reason(code, &error.to_string(), &counts.text()),
            Self::Done => reason(CloseCode::Normal, "", &counts.text()),
        }
    }
}

/// A close frame with a text, cut to what a close frame can carry, and the counters.
pub(super) fn reason(code: CloseCode, text: &str, counters: &str) -> CloseFrame {
    let mut text = text.to_owned();
    let room = MAX_REASON.saturating_sub(counters.len() + 3);
    if text.len() > room {
        let cut = (0..=room.saturating_sub(3))
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0);
        text.truncate(cut);
        text.push('…');
    }
    let reason = match (text.as_str(), counters) {
        ("", counters) => counters.to_owned(),
        (text, "") => text.to_owned(),
        (text, counters) => format!("{text} ({counters})"),
    };
    CloseFrame {
        code,
        reason: reason.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_fit_into_a_close_frame_with_their_counters() {
        let counters = "received 3, sent 2, failed 1";
        let close = reason(CloseCode::Invalid, &"ü".repeat(200), counters);
        assert!(close.reason.as_str().len() <= 123);
        assert!(
            close
                .reason
                .as_str()
                .ends_with("… (received 3, sent 2, failed 1)")
        );
        let close = reason(CloseCode::Normal, "", counters);
        assert_eq!(close.reason.as_str(), counters);
    }
}
