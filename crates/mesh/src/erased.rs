//! Handlers without their message types, so that the runtime can keep them in one list.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use tg_schemas::codec::CodecError;
use tg_schemas::{Error, ErrorCode, Headers, Message, Reply};
use tokio_util::sync::CancellationToken;

use crate::handler::{ConsumeError, RecordConsumer, RequestHandler};
use crate::mesh::Mesh;
use crate::room::LARGE;
use crate::scope::{Cx, InstanceScope};
use crate::writer_schemas;
use tg_bus::Envelope;
use tg_bus::Handover;
use tg_rpc::deadline::Deadline;
use tg_rpc::{ReplyStream, Responder, responder};

#[async_trait]
pub(crate) trait ErasedServe: Send + Sync {
    /// Decodes, runs the handler and makes sure that the answer ends.
    async fn run(&self, cx: Cx, question: Envelope, held: Arc<ReplyStream>) -> Outcome;
    /// See [`RequestHandler::resumes`].
    async fn resumes(&self, cx: &Cx) -> bool;
    /// Ends the answer with the type's failure reply.
    async fn fail(&self, mesh: &Mesh, held: Arc<ReplyStream>, error: Error);
}

/// How a handler ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ok,
    Failed,
}

impl Outcome {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "error",
        }
    }
}

#[async_trait]
pub(crate) trait ErasedRead: Send + Sync {
    async fn run(&self, cx: Cx, record: &Envelope) -> Result<(), ConsumeError>;
    /// The document that a record is of, where it says so and is not large: for the log.
    fn document(&self, record: &Envelope) -> Option<String>;
}

/// Largest record that is read again for the log, in bytes.
const READ_AGAIN: usize = 1 << 20;

/// The document that a message names: the one at the root of what it is of, else that itself.
fn document_of(message: &serde_json::Value) -> Option<String> {
    let names = ["/metadata/root", "/metadata/id", "/document_id"];
    let mut named = names.iter().filter_map(|at| message.pointer(at)?.as_str());
    named.find(|id| !id.is_empty()).map(str::to_owned)
}

pub(crate) struct ServeHandler<Q, R> {
    inner: Arc<dyn RequestHandler<Q, R>>,
}

impl<Q, R> ServeHandler<Q, R> {
    pub(crate) fn new(inner: Arc<dyn RequestHandler<Q, R>>) -> Self {
        Self { inner }
    }
}

#[async_trait]
impl<Q: Message, R: Reply> ErasedServe for ServeHandler<Q, R> {
    async fn run(&self, cx: Cx, question: Envelope, held: Arc<ReplyStream>) -> Outcome {
        let asked = Asked::of(&cx, held.clone(), Q::NAME);
        let read = question.read::<Q>();
        // What was read is not held twice while the handler works.
        drop(question);
        let work = read.map(|question| {
            let out = Responder::new(cx.mesh.server().clone(), held);
            self.inner.serve(cx, question, out)
        });
        asked.answered(work, responder::failure::<R>).await
    }

    async fn fail(&self, mesh: &Mesh, held: Arc<ReplyStream>, error: Error) {
        fail(mesh, &held, responder::failure::<R>(error)).await;
    }

    async fn resumes(&self, cx: &Cx) -> bool {
        self.inner.resumes(cx).await
    }
}

/// A question whose handler works, without its types.
struct Asked {
    mesh: Mesh,
    scope: Arc<InstanceScope>,
    headers: Arc<Headers>,
    cancel: CancellationToken,
    deadline: Deadline,
    held: Arc<ReplyStream>,
    name: &'static str,
}

impl Asked {
    fn of(cx: &Cx, held: Arc<ReplyStream>, name: &'static str) -> Self {
        Self {
            mesh: cx.mesh.clone(),
            scope: cx.scope.clone(),
            headers: cx.headers.clone(),
            cancel: cx.cancel.clone(),
            deadline: cx.deadline,
            held,
            name,
        }
    }

    /// Waits for the handler, and makes sure that the answer ends. `failure` writes an error as a reply.
    async fn answered(
        self,
        work: Result<BoxFuture<'_, Result<(), Error>>, CodecError>,
        failure: fn(Error) -> Result<Bytes, Error>,
    ) -> Outcome {
        let result = match work {
            Ok(work) => {
                let done = AssertUnwindSafe(work).catch_unwind().await;
                done.unwrap_or_else(|_| {
                    let (processor, request) = (&self.scope.processor, &self.headers.request_id);
                    let question = &self.headers.id;
                    tracing::error!(message = self.name, %processor, question, request, "a handler panicked");
                    Err(Error::new(ErrorCode::Internal, "internal error"))
                })
            }
            Err(fault) => Err(fault.into()),
        };
        if self.held.settled() {
            return if result.is_ok() {
                Outcome::Ok
            } else {
                Outcome::Failed
            };
        }
        let gave_up = self.cancel.is_cancelled();
        let error = match result {
            Err(error) if gave_up && error.code() == ErrorCode::Cancelled => ended(self.deadline),
            Err(error) => error,
            Ok(()) if gave_up => ended(self.deadline),
            Ok(()) => Error::new(ErrorCode::Internal, "the service sent no answer"),
        };
        fail(&self.mesh, &self.held, failure(error)).await;
        Outcome::Failed
    }
}

/// Ends an answer with a failure reply, if one could be written.
async fn fail(mesh: &Mesh, held: &Arc<ReplyStream>, body: Result<Bytes, Error>) {
    if let Ok(body) = body {
        let parts = vec![(body, Handover::default())];
        let _ = mesh.server().send(held, parts, true).await;
    }
}

pub(crate) struct ReadHandler<M> {
    inner: Arc<dyn RecordConsumer<M>>,
}

impl<M> ReadHandler<M> {
    pub(crate) fn new(inner: Arc<dyn RecordConsumer<M>>) -> Self {
        Self { inner }
    }
}

#[async_trait]
impl<M: Message> ErasedRead for ReadHandler<M> {
    async fn run(&self, cx: Cx, record: &Envelope) -> Result<(), ConsumeError> {
        if self.inner.passes_by(&cx) {
            return Ok(());
        }
        if let Some(done) = self.inner.is_done(&cx, record)
            && done.await?
        {
            return Ok(());
        }
        let record = match decode::<M>(record).await? {
            Err(CodecError::UnknownSchema { name, fingerprint }) => {
                of_another_release(&cx.mesh, record, name, fingerprint).await?
            }
            read => read.map_err(|fault| ConsumeError::Dead(fault.into()))?,
        };
        let (scope, headers) = (cx.scope.clone(), cx.headers.clone());
        consumed(self.inner.consume(cx, record), &scope, &headers, M::NAME).await
    }

    fn document(&self, record: &Envelope) -> Option<String> {
        if record.body.len() > READ_AGAIN {
            return None;
        }
        document_of(&serde_json::to_value(record.read::<M>().ok()?).ok()?)
    }
}

/// Waits for the consumer of a record.
async fn consumed(
    work: BoxFuture<'_, Result<(), ConsumeError>>,
    scope: &InstanceScope,
    headers: &Headers,
    name: &'static str,
) -> Result<(), ConsumeError> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    done.unwrap_or_else(|_| {
        let (processor, record) = (&scope.processor, &headers.id);
        tracing::error!(message = name, %processor, record, "a handler panicked");
        Err(ConsumeError::Dead(Error::new(
            ErrorCode::Internal,
            "internal error",
        )))
    })
}

/// Reads a record; a large one beside the runtime's threads, which questions need.
async fn decode<M: Message>(record: &Envelope) -> Result<Result<M, CodecError>, ConsumeError> {
    if record.body.len() < LARGE {
        return Ok(record.read::<M>());
    }
    let record = record.clone();
    let read = tokio::task::spawn_blocking(move || record.read::<M>()).await;
    read.map_err(|_| ConsumeError::Dead(Error::new(ErrorCode::Internal, "internal error")))
}

/// Reads a record whose writer had another schema. While nobody has kept that one, it comes again.
async fn of_another_release<M: Message>(
    mesh: &Mesh,
    record: &Envelope,
    name: &'static str,
    fingerprint: String,
) -> Result<M, ConsumeError> {
    let later = |error| ConsumeError::Retry { error, after: None };
    if writer_schemas::learn(mesh, &fingerprint)
        .await
        .map_err(later)?
    {
        return record
            .read::<M>()
            .map_err(|fault| ConsumeError::Dead(fault.into()));
    }
    Err(later(
        CodecError::UnknownSchema { name, fingerprint }.into(),
    ))
}

/// Why a cancelled answer ended: its deadline, or the asker.
fn ended(deadline: Deadline) -> Error {
    if deadline.passed() {
        Error::new(ErrorCode::Timeout, "the deadline has passed")
    } else {
        Error::new(ErrorCode::Cancelled, "cancelled")
    }
}
