//! The two ends of an answer: [`Answer`] reads its parts in order, [`Out`] sends them.

use std::marker::PhantomData;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tg_schemas::codec::{self, ContentType};
use tg_schemas::{Error, ErrorCode, Reply};

use crate::asker::{Got, Pending};
use crate::holder::Held;
use crate::mesh::Mesh;
use tg_bus::Handover;

/// Most parts in one message: what is sent ahead of the asker may exceed the window by these.
const TOGETHER: usize = 32;

/// The parts of an answer, in order and without repeats. Lazy: the question is sent when the first part
/// is asked for. Dropping it cancels the question unless it is detached.
pub struct Answer<R> {
    pub(crate) mesh: Mesh,
    /// `Err` holds a fault found before anything was sent.
    pub(crate) pending: Result<Arc<Pending>, Option<Error>>,
    pub(crate) finished: bool,
    pub(crate) kind: PhantomData<fn() -> R>,
}

impl<R: Reply> Answer<R> {
    /// The next part. After an `Err` or the last part: `None`. A part that carries a service error is `Ok`.
    pub async fn next(&mut self) -> Option<Result<R, Error>> {
        if self.finished {
            return None;
        }
        let pending = match &mut self.pending {
            Ok(pending) => pending.clone(),
            Err(fault) => {
                self.finished = true;
                return fault.take().map(Err);
            }
        };
        match self.mesh.asker().next(&self.mesh, &pending).await {
            Got::Part(envelope, numbered_last) => {
                let part = envelope.read::<R>();
                match part {
                    Ok(part) => {
                        self.finished = numbered_last || part.is_last();
                        if self.finished {
                            self.mesh.asker().forget(&pending);
                        }
                        Some(Ok(part))
                    }
                    Err(fault) => {
                        tracing::warn!(%fault, "unreadable part of an answer");
                        Some(Err(self.fail(Error::new(
                            ErrorCode::Internal,
                            "a service sent a reply that cannot be read",
                        ))))
                    }
                }
            }
            Got::Failed(error) => Some(Err(self.fail(error))),
        }
    }

    /// Reads to the end. A service error becomes `Err`.
    pub async fn last(mut self) -> Result<R, Error> {
        let mut last = None;
        while let Some(part) = self.next().await {
            last = Some(part?);
        }
        let part = last.ok_or_else(|| Error::new(ErrorCode::Internal, "empty answer"))?;
        match part.error() {
            Some(error) => Err(error.clone()),
            None => Ok(part),
        }
    }

    fn fail(&mut self, error: Error) -> Error {
        self.finished = true;
        if let Ok(pending) = &self.pending {
            self.mesh.asker().forget(pending);
        }
        error
    }
}

impl<R> Drop for Answer<R> {
    fn drop(&mut self) {
        if let (false, Ok(pending)) = (self.finished, &self.pending) {
            self.mesh.asker().abandon(&self.mesh, pending);
        }
    }
}

/// Where the rest of an answer goes, so that another message or process can go on with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default, rename_all = "kebab-case")]
pub struct ReplyAddress {
    /// Id of the question.
    pub id: String,
    /// Inbox of the asker (native) or response topic (interop).
    pub reply_to: String,
    /// Number of the next part.
    pub seq: u64,
    /// Deadline, milliseconds since the Unix epoch.
    pub deadline: u64,
    /// The work goes on when nobody listens.
    pub detach: bool,
    /// Foreign asker: parts are not numbered and go to a topic.
    pub foreign: bool,
}

/// Sends the parts of one answer.
pub struct Out<R> {
    pub(crate) mesh: Mesh,
    pub(crate) held: Arc<Held>,
    pub(crate) ended: bool,
    pub(crate) kind: PhantomData<fn(R)>,
}

impl<R: Reply> Out<R> {
    /// Sends one part; the answer ends with the part whose own flag says so. Waits while the asker is
    /// more than a window behind. `Err` when nobody wants the answer any more.
    pub async fn send(&mut self, part: R) -> Result<(), Error> {
        self.send_all(vec![part]).await
    }

    /// Sends parts that are there together; like [`Out::send`], but in one message where that can be. The
    /// asker gets them one by one.
    pub async fn send_all(&mut self, parts: Vec<R>) -> Result<(), Error> {
        if self.ended {
            return Err(Error::new(ErrorCode::Internal, "the answer has ended"));
        }
        let end = parts.iter().position(Reply::is_last);
        let count = end.map_or(parts.len(), |end| end + 1);
        let mut parts = parts.into_iter().take(count).peekable();
        while parts.peek().is_some() {
            let mut group = Vec::with_capacity(TOGETHER.min(count));
            for part in parts.by_ref().take(TOGETHER) {
                let body = codec::encode(&part, ContentType::Json)?;
                let handover = Handover::new(self.mesh.bus().in_process(), &body, || part);
                group.push((body, handover));
            }
            let last = end.is_some() && parts.peek().is_none();
            self.mesh
                .holder()
                .send(&self.mesh, &self.held, group, last)
                .await?;
            self.ended = last;
        }
        Ok(())
    }

    /// Whether the last part was sent.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Number of the next part.
    pub fn next_seq(&self) -> u64 {
        self.held.next_seq()
    }

    /// Cancelled when the asker gave up, unless the answer is detached.
    pub fn cancelled(&self) -> tokio_util::sync::CancellationToken {
        self.held.cancel.clone()
    }

    /// Gives the answer up here, to be continued with [`Mesh::resume`].
    pub fn release(mut self) -> ReplyAddress {
        self.ended = true;
        self.held.address()
    }
}

/// Encodes a failure reply of a type that only the handler knows.
pub(crate) fn failure<R: Reply>(error: Error) -> Result<bytes::Bytes, Error> {
    Ok(codec::encode(&R::failure(error), ContentType::Json)?)
}
