//! Operations as types over the bus: serving them, and calling them. What an operation is stands in
//! [`tg_schemas::operations`]; nothing here knows any of them.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{Cx, RequestHandler, Responder};
use tg_schemas::msg::{OperationRequest, OperationResponse};
use tg_schemas::operations::{Object, Operation, Refusal, read, write};
use tg_schemas::{Error, ErrorCode, Topic, WorkspaceId};

use crate::caller::Caller;

/// Why an operation was not done.
#[derive(Debug, Clone)]
pub enum Refused<E> {
    /// The operation's own error.
    Failure(E),
    /// An error of the mesh, or of a store.
    Error(Error),
}

impl<E> From<Error> for Refused<E> {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Does one operation.
#[async_trait]
pub trait Handle<O: Operation>: Send + Sync + 'static {
    /// Does it. Must be safe to run twice for the same `cx.id`.
    ///
    /// # Errors
    /// Why it was not done.
    async fn handle(
        &self,
        cx: &Cx,
        request: O::Request,
        out: &mut Chunks<'_, O>,
    ) -> Result<O::Reply, Refused<O::Error>>;
}

/// Where an operation reports what happens on the way.
pub struct Chunks<'a, O> {
    out: &'a mut Responder<OperationResponse>,
    operation: PhantomData<fn() -> O>,
}

impl<O: Operation> Chunks<'_, O> {
    /// Reports an event.
    ///
    /// # Errors
    /// Nobody reads any more, or the chunk cannot be written.
    pub async fn send(&mut self, event: &str, chunk: &O::Chunk) -> Result<(), Error> {
        let part = OperationResponse {
            event: event.to_owned(),
            data: write(chunk)?,
            ..OperationResponse::default()
        };
        self.out.send(part).await
    }
}

/// An operation and who does it, with its types forgotten.
#[async_trait]
trait Erased: Send + Sync {
    async fn run(
        &self,
        cx: &Cx,
        request: &Object,
        out: &mut Responder<OperationResponse>,
    ) -> OperationResponse;
}

struct Entry<O, H> {
    handler: Arc<H>,
    operation: PhantomData<fn() -> O>,
}

#[async_trait]
impl<O: Operation, H: Handle<O>> Erased for Entry<O, H> {
    async fn run(
        &self,
        cx: &Cx,
        request: &Object,
        out: &mut Responder<OperationResponse>,
    ) -> OperationResponse {
        let request = match read::<O::Request>(request) {
            Ok(request) => request,
            Err(why) => return failed(&O::Error::unreadable(why)),
        };
        let mut chunks = Chunks {
            out,
            operation: PhantomData,
        };
        let asked = request.clone();
        let done = self.handler.handle(cx, request, &mut chunks).await;
        let last = done.map(|reply| match O::end(&asked, &reply) {
            Some((event, data)) => Ok((event, data)),
            None => write(&reply).map(|data| ("", data)),
        });
        match last {
            Ok(Ok((event, data))) => OperationResponse {
                event: event.to_owned(),
                data,
                last: true,
                ..OperationResponse::default()
            },
            Err(Refused::Failure(failure)) => failed(&failure),
            Ok(Err(error)) | Err(Refused::Error(error)) => {
                <OperationResponse as tg_schemas::Reply>::failure(error)
            }
        }
    }
}

fn failed<E: Refusal>(failure: &E) -> OperationResponse {
    OperationResponse {
        error: Some(failure.error()),
        failure: write(failure).unwrap_or_default(),
        last: true,
        ..OperationResponse::default()
    }
}

/// The operations that a service serves.
#[derive(Default)]
pub struct Served(BTreeMap<&'static str, Box<dyn Erased>>);

impl Served {
    /// Serves one operation more.
    #[must_use]
    pub fn serve<O: Operation>(mut self, handler: Arc<impl Handle<O>>) -> Self {
        let entry = Entry::<O, _> {
            handler,
            operation: PhantomData,
        };
        self.0.insert(O::META.name, Box::new(entry));
        self
    }

    /// Names of the operations that it serves.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }
}

#[async_trait]
impl RequestHandler<OperationRequest, OperationResponse> for Served {
    async fn serve(
        &self,
        cx: Cx,
        asked: OperationRequest,
        mut out: Responder<OperationResponse>,
    ) -> Result<(), Error> {
        let Some(entry) = self.0.get(asked.operation.as_str()) else {
            let text = "operation: is not known to this service";
            return Err(Error::new(ErrorCode::BadOperation, text));
        };
        let last = entry.run(&cx, &asked.request, &mut out).await;
        out.send(last).await
    }
}

/// Calls an operation of a workspace as part of the work on a message, and waits for its reply.
///
/// # Errors
/// The operation's own error, or how the question failed.
pub async fn call<O: Operation>(
    cx: &Cx,
    workspace: &WorkspaceId,
    request: &O::Request,
) -> Result<O::Reply, Refused<O::Error>> {
    let topic = Topic::workspace(O::META.class, O::META.service, workspace);
    let question = OperationRequest {
        operation: O::META.name.to_owned(),
        request: write(request)?,
    };
    let caller = Caller::within(cx, Ok(topic));
    let mut answer = caller.ask(&question)?;
    while let Some(part) = answer.next().await {
        let part: OperationResponse = part?;
        if let Some(error) = part.error {
            return Err(match read::<O::Error>(&part.failure) {
                Ok(failure) => Refused::Failure(failure),
                Err(_) => Refused::Error(error),
            });
        }
        if part.last {
            let unread = |why| Error::new(ErrorCode::Internal, why);
            return Ok(read::<O::Reply>(&part.data).map_err(unread)?);
        }
    }
    let text = "the answer is incomplete";
    Err(Error::new(ErrorCode::Interrupted, text).into())
}
