//! What a service implements: answering questions, taking records.

use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use tg_bus::Envelope;
use tg_rpc::Responder;
use tg_schemas::{Error, Message, Reply, Retry};

use crate::scope::Cx;

/// Answers questions.
#[async_trait]
pub trait RequestHandler<Q: Message, R: Reply>: Send + Sync + 'static {
    /// Answers one question with one or more parts, the last of which says so by its own flag.
    /// `Err` becomes the type's failure reply. Must be safe to run twice for the same `cx.id`.
    ///
    /// # Errors
    /// Its asker gets it as the failure reply, and whoever has begun to read the answer as its end.
    async fn serve(&self, cx: Cx, question: Q, out: Responder<R>) -> Result<(), Error>;

    /// Whether the answer to `cx.id`, of which the asker already has parts, goes on by itself from what
    /// this service has stored. If not, the question ends as interrupted.
    async fn resumes(&self, _cx: &Cx) -> bool {
        false
    }
}

/// Why a record could not be handled.
#[derive(Debug, Clone)]
pub enum ConsumeError {
    /// May work later: dead-lettered and tried again with growing pauses. [`tg_schemas::ErrorCode::Busy`] says
    /// that nothing is wrong, only that it is too early.
    Retry {
        /// What went wrong.
        error: Error,
        /// Earliest next try, if later than the pause would be.
        after: Option<Duration>,
    },
    /// Will never work: dead-lettered for people to look at.
    Dead(Error),
}

impl From<Error> for ConsumeError {
    /// Transient and storage errors are retried, everything else is dead.
    fn from(error: Error) -> Self {
        match error.code().retry() {
            Retry::Passes => Self::Retry { error, after: None },
            Retry::MayFailAgain | Retry::Refused | Retry::Never => Self::Dead(error),
        }
    }
}

/// See [`RecordConsumer::is_done`]; fails as [`RecordConsumer::consume`] does.
pub type IsDone<'a> = BoxFuture<'a, Result<bool, ConsumeError>>;

/// Takes records.
#[async_trait]
pub trait RecordConsumer<M: Message>: Send + Sync + 'static {
    /// Makes the record's effect durable, then returns. Called at least once per record: idempotent.
    ///
    /// # Errors
    /// The record becomes a dead letter, to be tried again or to be looked at. It is acknowledged once that is durable.
    async fn consume(&self, cx: Cx, record: M) -> Result<(), ConsumeError>;

    /// Whether the headers of a record already say that it has no effect here. It is acknowledged, and its body is not read.
    fn passes_by(&self, _cx: &Cx) -> bool {
        false
    }

    /// Finds out, which may take a while, whether the effect of a record is there already, by a few of its fields
    /// ([`Envelope::at_hand`], [`tg_schemas::codec::fields`]). Then it is acknowledged and not read. `None`: nobody can say so.
    fn is_done<'a>(&'a self, _cx: &'a Cx, _record: &'a Envelope) -> Option<IsDone<'a>> {
        None
    }
}
