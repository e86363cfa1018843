//! What a service hosts: a processor id with its handlers.

use std::sync::Arc;

use tg_schemas::{Message, Reply};

use crate::erased::{ErasedRead, ErasedServe, ReadHandler, ServeHandler};
use crate::handler::{RecordConsumer, RequestHandler};
use crate::leased_store::Owned;

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
    pub fn serves<Q: Message, R: Reply>(
        self,
        spec: &str,
        handler: Arc<dyn RequestHandler<Q, R>>,
    ) -> Self {
        self.with(
            spec,
            Place::Flow,
            Handler::Serve(Arc::new(ServeHandler::new(handler))),
        )
    }

    /// Takes records of a flow spec, e.g. `input`.
    pub fn reads<M: Message>(self, spec: &str, handler: Arc<dyn RecordConsumer<M>>) -> Self {
        self.with(
            spec,
            Place::Flow,
            Handler::Read(Arc::new(ReadHandler::new(handler))),
        )
    }

    /// Takes records of a topic that the mesh itself adds to every flow, e.g. `agent-step`.
    pub fn reads_own<M: Message>(self, base: &str, handler: Arc<dyn RecordConsumer<M>>) -> Self {
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
        handler: Arc<dyn RequestHandler<Q, R>>,
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
        handler: Arc<dyn RequestHandler<Q, R>>,
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
        handler: Arc<dyn RequestHandler<Q, R>>,
    ) -> Self {
        self.with(
            base,
            Place::System,
            Handler::Serve(Arc::new(ServeHandler::new(handler))),
        )
    }

    /// Takes records from `flow:tg:<base>`.
    pub fn reads_system<M: Message>(self, base: &str, handler: Arc<dyn RecordConsumer<M>>) -> Self {
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
