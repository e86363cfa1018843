//! The writing half of a socket.

use std::time::Duration;

use futures::stream::SplitSink;
use futures::{Sink, SinkExt};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};
use tokio_util::sync::CancellationToken;

use super::upgrade::Socket;
use crate::sending::SendPermit;

/// Bytes that go out before they are flushed.
const BATCH: usize = 256 << 10;
/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(1);

/// A message that waits to be written, and its place.
pub(super) struct Outgoing {
    message: Message,
    _permit: Option<SendPermit>,
}

impl Outgoing {
    /// With the place that it has until it is written.
    pub(super) fn with_permit(message: Message, place: Option<SendPermit>) -> Self {
        Self {
            message,
            _permit: place,
        }
    }
}

/// What is said beside answers is small, and needs no place.
impl From<Message> for Outgoing {
    fn from(message: Message) -> Self {
        Self::with_permit(message, None)
    }
}

/// Writes until everybody who could send is gone, or the client is. Whatever is ready goes out in one flush, up to a
/// bound. There is no limit of time here: the connection itself notices a client that takes nothing at all, and
/// one that takes a little is never cut.
pub(super) async fn write(
    mut sink: SplitSink<Socket, Message>,
    mut queue: mpsc::Receiver<Outgoing>,
    gone: CancellationToken,
    written: CancellationToken,
) {
    let _done = written.drop_guard();
    loop {
        let message = tokio::select! {
            message = queue.recv() => message,
            () = gone.cancelled() => None,
        };
        let Some(message) = message else { break };
        let batch = batch(&mut sink, &mut queue, message);
        let last = tokio::select! {
            last = batch => last,
            () = gone.cancelled() => break,
        };
        if !matches!(last, Ok(false)) {
            break;
        }
    }
    gone.cancel();
    // Whoever still waits for room in the queue learns that nobody reads it.
    drop(queue);
    let _ = tokio::time::timeout(GOODBYE, sink.close()).await;
}

/// Sends a message and what else is ready; whether the last of it closes the socket.
async fn batch<S: Sink<Message, Error = WsError> + Unpin>(
    sink: &mut S,
    queue: &mut mpsc::Receiver<Outgoing>,
    first: Outgoing,
) -> Result<bool, WsError> {
    let mut next = first;
    let mut bytes = 0;
    loop {
        let Outgoing { message, _permit } = next;
        let last = matches!(message, Message::Close(_));
        bytes += message.len();
        sink.feed(message).await?;
        if last || bytes >= BATCH {
            sink.flush().await?;
            return Ok(last);
        }
        match queue.try_recv() {
            Ok(more) => next = more,
            Err(_) => {
                sink.flush().await?;
                return Ok(false);
            }
        }
    }
}
