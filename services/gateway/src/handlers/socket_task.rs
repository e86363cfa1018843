//! One question of a socket, from its frame to its last part.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::socket_frame as frame;
use super::socket_writer::Outgoing;
use crate::ask::Part;
use crate::budget::Reader;
use crate::call::{Call, Meta};
use crate::error::RequestError;
use crate::running::{Place, Running};
use crate::sending::Room;
use crate::state::Shared;
use crate::turns::Lane;

/// Questions under way by the text of their id, each with its token.
pub(super) type UnderWay = Arc<Mutex<HashMap<String, Vec<(u64, CancellationToken)>>>>;

/// The credential of a caller who is known; it is looked at again with every question.
#[derive(Clone)]
pub(super) struct Caller(pub(super) Arc<str>);

/// A question in the list of those under way; leaves it when dropped.
pub(super) struct Entry {
    list: UnderWay,
    key: String,
    number: u64,
    _permit: OwnedSemaphorePermit,
}

impl Entry {
    /// Puts a question on the list.
    pub(super) fn new(
        list: &UnderWay,
        id: &Value,
        number: u64,
        token: CancellationToken,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let key = id.to_string();
        let mut all = list.lock();
        all.entry(key.clone()).or_default().push((number, token));
        drop(all);
        Self {
            list: list.clone(),
            key,
            number,
            _permit: permit,
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut all = self.list.lock();
        if let Some(same) = all.get_mut(&self.key) {
            same.retain(|(number, _)| *number != self.number);
            if same.is_empty() {
                all.remove(&self.key);
            }
        }
    }
}

/// What a question needs.
pub(super) struct Task {
    pub(super) app: Shared,
    pub(super) caller: Caller,
    /// Whose answers wait.
    pub(super) reader: Reader,
    pub(super) id: Value,
    pub(super) bytes: Bytes,
    pub(super) number: u64,
    pub(super) meta: Meta,
    /// The client wants this question no more.
    pub(super) cancel: CancellationToken,
    /// The client is gone.
    pub(super) gone: CancellationToken,
    pub(super) outgoing: mpsc::Sender<Outgoing>,
    /// For what waits there.
    pub(super) room: Room,
    pub(super) entry: Entry,
}

/// Carries the parts of one answer to the writer. Ends with the socket.
pub(super) async fn answer(task: Task) {
    let span = tracing::info_span!(
        "question",
        request = %task.meta.request_id,
        number = task.number,
        service = tracing::field::Empty,
    );
    let gone = task.gone.clone();
    let work = async {
        tokio::select! {
            () = forward(task) => {}
            () = gone.cancelled() => {}
        }
    };
    work.instrument(span).await;
}

async fn forward(mut task: Task) {
    // What looks after a detached question here ends with it.
    let over = CancellationToken::new();
    let _over = over.clone().drop_guard();
    let bytes = std::mem::take(&mut task.bytes);
    let mut running = match start(&task, bytes, over).await {
        Ok(running) => running,
        Err(fault) => {
            let frame = frame::failure(&task.id, &fault);
            let _ = task.outgoing.send(text(&frame).into()).await;
            return;
        }
    };
    while let Some(part) = running.next().await {
        let lane = running.lane.clone();
        let text = written(&lane, &task.id, part, running.place()).await;
        let message = Message::text(text);
        let place = task.room.take(&task.reader, message.len()).await;
        let message = Outgoing::with_permit(message, place);
        if task.outgoing.send(message).await.is_err() {
            return;
        }
    }
    drop(task.entry);
}

/// The text of a part.
async fn written(lane: &Lane, id: &Value, part: Part, place: Option<Place<'_>>) -> String {
    if !part.is_long() {
        return frame::part(id, part, place);
    }
    let of = place.map(|place| (place.run.to_owned(), place.offset));
    let own = id.clone();
    let work = move || {
        let place = of.as_ref().map(|(run, offset)| Place {
            run,
            offset: *offset,
        });
        frame::part(&own, part, place)
    };
    let text = lane.run(work).await;
    text.unwrap_or_else(|error| frame::part(id, Part::Error(error), None))
}

/// Reads the request when there is memory for it, and asks.
async fn start(
    task: &Task,
    bytes: Bytes,
    over: CancellationToken,
) -> Result<Running, RequestError> {
    let app = &task.app;
    let identity = app.known(Some(&*task.caller.0), &task.meta).await?;
    let reader = Reader::known(&identity);
    let (question, reading) = app.budget.read(&reader, bytes, frame::question).await?;
    let question = question?;
    tracing::Span::current().record("service", question.target.name());
    let target = &question.target;
    let reads_on = target.joins() && !target.replays();
    let lasts = target.goes_on(question.leave) || reads_on;
    let cancel = match lasts {
        false => task.cancel.clone(),
        // Only the client's own word ends it, not that the client went.
        true => detached_from(task, over),
    };
    let call = Call {
        target: question.target,
        body: question.body,
        workspace: question.workspace,
        timeout: question.timeout,
        leave: question.leave,
        whole: false,
        meta: task.meta.clone(),
    };
    let running = app.start(&identity, call, cancel).await?;
    Ok(running.holding(reading))
}

/// A token that is cancelled with the question's, but not because the socket went. Nothing waits for that any more
/// when the question is over.
fn detached_from(task: &Task, over: CancellationToken) -> CancellationToken {
    let own = CancellationToken::new();
    let (asked, gone, token) = (task.cancel.clone(), task.gone.clone(), own.clone());
    task.app
        .mesh
        .spawn(tg_mesh::TaskKind::Background, async move {
            tokio::select! {
                biased;
                () = gone.cancelled() => {}
                () = over.cancelled() => {}
                () = token.cancelled() => {}
                () = asked.cancelled() => token.cancel(),
            }
        });
    own
}

/// A frame as a message.
pub(super) fn text(frame: &Value) -> Message {
    Message::text(frame::text(frame))
}
