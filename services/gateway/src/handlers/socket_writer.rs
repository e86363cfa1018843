//! The writing half of a socket, and the room that there is for what waits to be written.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::SplitSink;
use futures::{Sink, SinkExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_tungstenite::tungstenite::{Error as WsError, Message};
use tokio_util::sync::CancellationToken;

use super::upgrade::Socket;

/// Bytes that go out before they are flushed.
const BATCH: usize = 256 << 10;
/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(1);
/// Bytes of answers that wait to be written to one socket. One that is larger waits alone.
const WAITING: usize = 8 << 20;

/// A message that waits to be written, and its place.
pub(super) struct Outgoing {
    message: Message,
    _room: Option<OwnedSemaphorePermit>,
}

/// What is said beside answers is small, and needs no place.
impl From<Message> for Outgoing {
    fn from(message: Message) -> Self {
        Self {
            message,
            _room: None,
        }
    }
}

/// Room for the answers of one socket. Whoever has none waits: a client that reads slowly does not have the answers
/// kept for it here.
#[derive(Clone)]
pub(super) struct Room(Arc<Semaphore>);

impl Room {
    /// For one socket.
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(WAITING)))
    }

    /// Waits for a place for a message, which is free again when it is written.
    pub(super) async fn take(&self, message: Message) -> Outgoing {
        let bytes = u32::try_from(message.len().min(WAITING)).unwrap_or(u32::MAX);
        // It is never closed.
        let room = self.0.clone().acquire_many_owned(bytes).await.ok();
        Outgoing {
            message,
            _room: room,
        }
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
        let Outgoing { message, _room } = next;
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

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_message_waits_until_there_is_room_and_a_large_one_until_it_is_alone() {
        let room = Room::new();
        let of = |bytes: usize| room.take(Message::text("x".repeat(bytes)));
        let first = of(WAITING - 1).await;
        let second = of(1).await;
        assert!(of(1).now_or_never().is_none());
        drop(first);
        assert!(of(WAITING + 1).now_or_never().is_none());
        drop(second);
        let large = of(WAITING + 1).await;
        assert!(of(1).now_or_never().is_none());
        drop(large);
        of(1).await;
    }
}
