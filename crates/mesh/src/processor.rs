//! What a service hosts: a processor id with its handlers, and what the handlers implement.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tg_schemas::{Error, Message, Reply};

use crate::erased::{ErasedRead, ErasedServe, ReadHandler, ServeHandler};
use crate::owned::Owned;
use crate::scope::Cx;
use tg_rpc::Out;

/// Answers questions.
#[async_trait]
pub trait Serve<Q: Message, R: Reply>: Send + Sync + 'static {
    /// Answers one question with one or more parts, the last of which says so by its own flag.
    /// `Err` becomes the type's failure reply. Must be safe to run twice for the same `cx.id`.
    async fn serve(&self, cx: Cx, question: Q, out: Out<R>) -> Result<(), Error>;

    /// Whether the answer to `cx.id`, of which the asker already has parts, goes on by itself from what
    /// this service has stored. If not, the question ends as interrupted.
    async fn resumes(&self, _cx: &Cx) -> bool {
        false
    }
}

/// Why a record could not be handled.
#[derive(Debug, Clone)]
pub enum ReadFault {
    /// May work later: put aside and tried again with growing pauses. [`tg_schemas::ErrorCode::Busy`] says
    /// that nothing is wrong, only that it is too early.
    Retry {
        /// What went wrong.
        error: Error,
        /// Earliest next try, if later than the pause would be.
        after: Option<Duration>,
    },
    /// Will never work: put aside for people to look at.
    Dead(Error),
}

impl From<Error> for ReadFault {
    /// Transient and storage errors are retried, everything else is dead.
    fn from(error: Error) -> Self {
        let code = error.code();
        if code.is_transient() || code == tg_schemas::ErrorCode::Storage {
            Self::Retry { error, after: None }
        } else {
            Self::Dead(error)
        }
    }
}

/// Takes records.
#[async_trait]
pub trait Read<M: Message>: Send + Sync + 'static {
    /// Makes the record's effect durable, then returns. Called at least once per record: idempotent.
    async fn read(&self, cx: Cx, record: M) -> Result<(), ReadFault>;
}

/// Where the topic of a handler comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// `topics[spec]` of the processor's config row, one instance per flow.
    Flow,
    /// `flow:tg:<spec>:{workspace}:{id}` (or `request:…`) of each flow the processor has a row for; not in
    /// blueprints.
    FlowOwn,
    /// `request:tg:<spec>:{workspace}`, one instance per workspace.
    Workspace,
    /// `request:tg:<spec>` (or `flow:tg:<spec>`), one per system.
    System,
}

pub(crate) enum Handler {
    Serve(Arc<dyn ErasedServe>),
    Read(Arc<dyn ErasedRead>),
}

pub(crate) struct Hosted {
    pub(crate) spec: String,
    pub(crate) place: Place,
    pub(crate) handler: Handler,
}

impl Hosted {
    /// Whether there is an instance per flow.
    pub(crate) fn per_flow(&self) -> bool {
        matches!(self.place, Place::Flow | Place::FlowOwn)
    }
}

/// A processor to host: id, handlers, limits. Built by the service crate, given to `Mesh::host`.
pub struct Processor {
    pub(crate) id: String,
    pub(crate) handlers: Vec<Hosted>,
    pub(crate) watches: Vec<&'static str>,
    pub(crate) concurrency: usize,
    pub(crate) owner: Option<Owner>,
}

/// What decides whether this process serves a processor.
pub(crate) struct Owner {
    pub(crate) store: String,
    pub(crate) owned: Option<Arc<dyn Owned>>,
}

impl Processor {
    /// A processor by its id in the processor table.
    pub fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            handlers: Vec::new(),
            watches: Vec::new(),
            concurrency: 64,
            owner: None,
        }
    }

    /// Answers questions of a flow spec, e.g. `request`.
    pub fn serves<Q: Message, R: Reply>(self, spec: &str, handler: Arc<dyn Serve<Q, R>>) -> Self {
        self.with(
            spec,
            Place::Flow,
            Handler::Serve(Arc::new(ServeHandler::new(handler))),
        )
    }

    /// Takes records of a flow spec, e.g. `input`.
    pub fn reads<M: Message>(self, spec: &str, handler: Arc<dyn Read<M>>) -> Self {
        self.with(
            spec,
            Place::Flow,
            Handler::Read(Arc::new(ReadHandler::new(handler))),
        )
    }

    /// Takes records of a topic that the mesh itself adds to every flow, e.g. `agent-step`.
    pub fn reads_own<M: Message>(self, base: &str, handler: Arc<dyn Read<M>>) -> Self {
        self.with(
            base,
            Place::FlowOwn,
            Handler::Read(Arc::new(ReadHandler::new(handler))),
        )
    }

    /// Answers questions on `request:tg:<base>:{workspace}:{id}` of each flow the processor has a row for;
    /// not in blueprints, so only native processes ask there.
    pub fn serves_own<Q: Message, R: Reply>(
        self,
        base: &str,
        handler: Arc<dyn Serve<Q, R>>,
    ) -> Self {
        self.with(
            base,
            Place::FlowOwn,
            Handler::Serve(Arc::new(ServeHandler::new(handler))),
        )
    }

    /// Answers questions on `request:tg:<base>:<workspace>` of every workspace.
    pub fn serves_workspace<Q: Message, R: Reply>(
        self,
        base: &str,
        handler: Arc<dyn Serve<Q, R>>,
    ) -> Self {
        self.with(
            base,
            Place::Workspace,
            Handler::Serve(Arc::new(ServeHandler::new(handler))),
        )
    }

    /// Answers questions on `request:tg:<base>`.
    pub fn serves_system<Q: Message, R: Reply>(
        self,
        base: &str,
        handler: Arc<dyn Serve<Q, R>>,
    ) -> Self {
        self.with(
            base,
            Place::System,
            Handler::Serve(Arc::new(ServeHandler::new(handler))),
        )
    }

    /// Takes records from `flow:tg:<base>`.
    pub fn reads_system<M: Message>(self, base: &str, handler: Arc<dyn Read<M>>) -> Self {
        self.with(
            base,
            Place::System,
            Handler::Read(Arc::new(ReadHandler::new(handler))),
        )
    }

    /// Config types whose rows the handlers look up in [`crate::ConfigView`].
    pub fn watches(mut self, types: &[&'static str]) -> Self {
        self.watches.extend_from_slice(types);
        self
    }

    /// Most messages in progress per subscription (default 64). Questions above it are refused as busy,
    /// records wait.
    pub fn concurrency(mut self, limit: usize) -> Self {
        self.concurrency = limit.max(1);
        self
    }

    /// Only one process serves; others stand by. For what keeps nothing; else [`Processor::owns`].
    pub fn exclusive(mut self) -> Self {
        self.owner = Some(Owner {
            store: self.id.clone(),
            owned: None,
        });
        self
    }

    /// Only the process that owns the store serves; processors that share a store are given the same one.
    /// The store is taken before anything is attached and let go when the claim to it is lost.
    pub fn owns(mut self, store: impl Owned) -> Self {
        self.owner = Some(Owner {
            store: store.name().to_owned(),
            owned: Some(Arc::new(store)),
        });
        self
    }

    /// Whether it has handlers that are attached per flow.
    pub(crate) fn has_flow_handlers(&self) -> bool {
        self.handlers.iter().any(Hosted::per_flow)
    }

    fn with(mut self, spec: &str, place: Place, handler: Handler) -> Self {
        self.handlers.push(Hosted {
            spec: spec.to_owned(),
            place,
            handler,
        });
        self
    }
}
