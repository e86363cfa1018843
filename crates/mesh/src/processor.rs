//! What a service hosts: a processor id with its handlers.

use std::sync::Arc;

use tg_schemas::flow_record::KIND as FLOW;
use tg_schemas::processors::{Kind, ProcessorSpec, Reads, Serves, Spec, SpecRow, TopicScope};
use tg_schemas::{Message, Reply};

use crate::erased::{ErasedRead, ErasedServe, ReadHandler, ServeHandler};
use crate::handler::{RecordConsumer, RequestHandler};
use crate::leased_store::Leased;

/// Config type of a processor's rows.
pub(crate) fn row_kind(processor: &str) -> String {
    format!("processor:{processor}")
}

pub(crate) enum Handler {
    Serve(Arc<dyn ErasedServe>),
    Read(Arc<dyn ErasedRead>),
}

pub(crate) struct Hosted {
    pub(crate) spec: &'static str,
    pub(crate) place: TopicScope,
    /// It reports to writers what became of their records.
    pub(crate) keeps: bool,
    pub(crate) handler: Handler,
}

impl Hosted {
    /// Whether there is an instance per flow.
    pub(crate) fn per_flow(&self) -> bool {
        matches!(self.place, TopicScope::Flow | TopicScope::Own)
    }
}

/// A processor to host: id, handlers, limits. Built by the service crate, given to `Mesh::host`.
pub struct Processor {
    declared: ProcessorSpec,
    pub(crate) id: &'static str,
    pub(crate) handlers: Vec<Hosted>,
    pub(crate) watches: Vec<&'static str>,
    pub(crate) concurrency: usize,
    pub(crate) owner: Option<Owner>,
}

/// What decides whether this process serves a processor.
pub(crate) struct Owner {
    pub(crate) store: String,
    pub(crate) owned: Option<Arc<dyn Leased>>,
}

impl Processor {
    /// A processor of the table.
    pub fn new(declared: ProcessorSpec) -> Self {
        Self {
            declared,
            id: declared.id,
            handlers: Vec::new(),
            watches: Vec::new(),
            concurrency: 64,
            owner: None,
        }
    }

    /// Answers questions of a spec, where the spec says: in each flow, each workspace or once in the system.
    ///
    /// A handler of other messages does not compile:
    ///
    /// ```compile_fail,E0308
    /// # use std::sync::Arc;
    /// # use tg_mesh::{Processor, RequestHandler};
    /// # use tg_schemas::msg::{TriplesQueryRequest, TriplesQueryResponse};
    /// # use tg_schemas::processors::rows_query;
    /// fn host(of_triples: Arc<dyn RequestHandler<TriplesQueryRequest, TriplesQueryResponse>>) -> Processor {
    ///     Processor::new(rows_query::PROCESSOR).serves(rows_query::REQUEST, of_triples)
    /// }
    /// ```
    ///
    /// # Panics
    /// When the processor has no such spec, which is seen when it is hosted, before it serves anybody.
    #[track_caller]
    pub fn serves<Q: Message, R: Reply>(
        self,
        spec: Spec<Serves<Q, R>>,
        handler: Arc<dyn RequestHandler<Q, R>>,
    ) -> Self {
        self.with(spec, Handler::Serve(Arc::new(ServeHandler::new(handler))))
    }

    /// Takes records of a spec, where the spec says.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tg_mesh::{Processor, RecordConsumer};
    /// # use tg_schemas::msg::Triples;
    /// # use tg_schemas::processors::triples_write;
    /// fn host(keeps: Arc<dyn RecordConsumer<Triples>>) -> Processor {
    ///     Processor::new(triples_write::PROCESSOR).reads(triples_write::INPUT, keeps)
    /// }
    /// ```
    ///
    /// A handler of another message does not compile, nor does a spec that nobody declared or one of another direction:
    ///
    /// ```compile_fail,E0308
    /// # use std::sync::Arc;
    /// # use tg_mesh::{Processor, RecordConsumer};
    /// # use tg_schemas::msg::Chunk;
    /// # use tg_schemas::processors::triples_write;
    /// fn host(of_chunks: Arc<dyn RecordConsumer<Chunk>>) -> Processor {
    ///     Processor::new(triples_write::PROCESSOR).reads(triples_write::INPUT, of_chunks)
    /// }
    /// ```
    ///
    /// ```compile_fail,E0425
    /// # use std::sync::Arc;
    /// # use tg_mesh::{Processor, RecordConsumer};
    /// # use tg_schemas::msg::Triples;
    /// # use tg_schemas::processors::triples_write;
    /// fn host(keeps: Arc<dyn RecordConsumer<Triples>>) -> Processor {
    ///     Processor::new(triples_write::PROCESSOR).reads(triples_write::INPUTS, keeps)
    /// }
    /// ```
    ///
    /// ```compile_fail,E0308
    /// # use std::sync::Arc;
    /// # use tg_mesh::{Processor, RecordConsumer};
    /// # use tg_schemas::msg::Triples;
    /// # use tg_schemas::processors::chunker;
    /// fn host(keeps: Arc<dyn RecordConsumer<Triples>>) -> Processor {
    ///     Processor::new(chunker::PROCESSOR).reads(chunker::TRIPLES, keeps)
    /// }
    /// ```
    ///
    /// # Panics
    /// When the processor has no such spec, which is seen when it is hosted, before it serves anybody.
    #[track_caller]
    pub fn reads<M: Message>(
        self,
        spec: Spec<Reads<M>>,
        handler: Arc<dyn RecordConsumer<M>>,
    ) -> Self {
        self.with(spec, Handler::Read(Arc::new(ReadHandler::new(handler))))
    }

    /// Config types whose rows the handlers look up in [`crate::ConfigView`].
    pub fn watches(mut self, types: &[&'static str]) -> Self {
        self.watches.extend_from_slice(types);
        self
    }

    /// All config types that are looked at for this processor: its own, and those that say where it is attached.
    pub(crate) fn watched_types(&self) -> Vec<String> {
        let mut types: Vec<_> = self.watches.iter().map(|kind| (*kind).to_owned()).collect();
        if self.has_flow_handlers() {
            types.extend([row_kind(self.id), FLOW.to_owned()]);
        }
        types
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
            store: self.id.to_owned(),
            owned: None,
        });
        self
    }

    /// Only the process that owns the store serves; processors that share a store are given the same one.
    /// The store is taken before anything is attached and let go when the claim to it is lost.
    pub fn owns(mut self, store: impl Leased) -> Self {
        self.owner = Some(Owner {
            store: store.name().to_owned(),
            owned: Some(Arc::new(store)),
        });
        self
    }

    /// The store that it shares with the processors that own the same one, if it owns one.
    pub fn store(&self) -> Option<Arc<dyn Leased>> {
        self.owner.as_ref().and_then(|owner| owner.owned.clone())
    }

    /// Name of the lease under which one process alone serves it, if there is one.
    pub fn lease(&self) -> Option<&str> {
        self.owner.as_ref().map(|owner| owner.store.as_str())
    }

    /// What it was declared as.
    pub fn declared(&self) -> &ProcessorSpec {
        &self.declared
    }

    /// The specs with a queue that it declares and has no handler for: none, where a service hosts it.
    pub fn unserved(&self) -> impl Iterator<Item = &'static SpecRow> {
        let specs = self.declared.specs.iter();
        specs.filter(|spec| {
            let same = |hosted: &Hosted| (hosted.spec, hosted.place) == (spec.name, spec.place);
            spec.role.consumes() && !self.handlers.iter().any(same)
        })
    }

    /// Whether it has handlers that are attached per flow.
    pub(crate) fn has_flow_handlers(&self) -> bool {
        self.handlers.iter().any(Hosted::per_flow)
    }

    #[track_caller]
    fn with<K: Kind>(mut self, spec: Spec<K>, handler: Handler) -> Self {
        assert!(
            self.declared.is_unlisted() || self.declared.has(&spec.row()),
            "{} has no spec '{}' of that kind",
            self.id,
            spec.name
        );
        self.handlers.push(Hosted {
            spec: spec.name,
            place: spec.place,
            keeps: spec.row().keeps,
            handler,
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use tg_schemas::msg::{Triples, TriplesQueryRequest, TriplesQueryResponse};
    use tg_schemas::processors::{sparql_query, triples_query, triples_write};

    use super::*;
    use crate::{ConsumeError, Cx, Responder};

    struct Nobody;

    #[async_trait::async_trait]
    impl RecordConsumer<Triples> for Nobody {
        async fn consume(&self, _: Cx, _: Triples) -> Result<(), ConsumeError> {
            Ok(())
        }
    }

    #[async_trait::async_trait]
    impl RequestHandler<TriplesQueryRequest, TriplesQueryResponse> for Nobody {
        async fn serve(
            &self,
            _: Cx,
            _: TriplesQueryRequest,
            _: Responder<TriplesQueryResponse>,
        ) -> Result<(), tg_schemas::Error> {
            Ok(())
        }
    }

    #[test]
    fn a_processor_hosts_what_it_declares() {
        let writer = Processor::new(triples_write::PROCESSOR);
        let writer = writer.reads(triples_write::INPUT, Arc::new(Nobody));
        assert!(writer.has_flow_handlers());
        let other = Processor::new(ProcessorSpec::unlisted("a test's own"));
        let other = other.reads(triples_write::INPUT, Arc::new(Nobody));
        assert_eq!(other.handlers[0].spec, "input");
    }

    #[test]
    #[should_panic = "sparql-query has no spec 'input' of that kind"]
    fn a_spec_of_another_processor_is_refused() {
        let _ =
            Processor::new(sparql_query::PROCESSOR).reads(triples_write::INPUT, Arc::new(Nobody));
    }

    #[test]
    #[should_panic = "sparql-query has no spec 'request' of that kind"]
    fn a_spec_of_the_same_name_with_another_message_is_refused() {
        let _ = Processor::new(sparql_query::PROCESSOR)
            .serves(triples_query::REQUEST, Arc::new(Nobody));
    }
}
