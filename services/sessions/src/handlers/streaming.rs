//! Turns whose answers are read as they come: what happens is passed on, one event after the other.

use std::future::Future;

use tg_clients::operations::Chunks;
use tg_schemas::operations::{Operation, TurnEvent};
use tokio::sync::mpsc;

use super::asking::Events;
use crate::error::SessionsError;

/// Events that wait for their reader. A reader that is slower makes the turn wait.
const WAITING: usize = 64;

/// Runs a turn, and passes on what it reports. A reader that has gone does not stop it here.
pub(super) async fn streamed<O, F, T>(
    out: &mut Chunks<'_, O>,
    turn: impl FnOnce(Events) -> F,
) -> Result<T, SessionsError>
where
    O: Operation<Chunk = TurnEvent>,
    F: Future<Output = Result<T, SessionsError>>,
{
    let (events, mut waiting) = mpsc::channel(WAITING);
    let mut turn = std::pin::pin!(turn(events));
    let done = loop {
        tokio::select! {
            biased;
            Some((event, data)) = waiting.recv() => {
                // Nobody reads any more: the turn ends by itself.
                let _ = out.send(event, &TurnEvent(data)).await;
            }
            done = &mut turn => break done,
        }
    };
    // What it reported last.
    while let Ok((event, data)) = waiting.try_recv() {
        let _ = out.send(event, &TurnEvent(data)).await;
    }
    done
}
