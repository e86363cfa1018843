//! How a row of configuration becomes consumers of queues.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tg_schemas::flow_record::ProcessorRow;
use tg_schemas::processors::TopicScope;
use tg_schemas::{Class, FlowId, Subscription, Topic, WorkspaceId};

use crate::consume_sink::ConsumeSink;
use crate::instance::At;
use crate::instance_state::InstanceState;
use crate::mesh::Mesh;
use crate::near::{NearConsumer, NearSink};
use crate::processor::{Handler, Hosted, Processor};
use crate::scope::InstanceScope;
use crate::serve_sink::{ServeSink, response_topic};
use tg_bus::{BusError, Consume, Consumer};

/// The handlers of one processor.
pub(crate) struct Wiring {
    id: String,
    handlers: Vec<Hosted>,
    concurrency: usize,
    /// Name of the store that decides whether this process serves.
    claim: Option<Arc<str>>,
}

impl Wiring {
    pub(crate) fn of(processor: Processor, claim: Option<Arc<str>>) -> Self {
        Self {
            id: processor.id.to_owned(),
            handlers: processor.handlers,
            concurrency: processor.concurrency,
            claim,
        }
    }

    /// Whether some handler is attached at this kind of place.
    pub(crate) fn has(&self, wanted: TopicScope) -> bool {
        self.handlers.iter().any(|hosted| hosted.place == wanted)
    }

    /// `None` when the row cannot be read; that is told, not tried again.
    #[allow(clippy::type_complexity, reason = "a pair used in one place")]
    pub(crate) async fn attach_one(
        &self,
        mesh: &Mesh,
        at: &At,
        row: &str,
    ) -> Result<Option<(Arc<InstanceState>, Vec<Box<dyn Consumer>>)>, BusError> {
        let Some(scope) = self.scope(at, row) else {
            tracing::warn!(processor = %self.id, %at, "a processor row cannot be read");
            return Ok(None);
        };
        let slot = InstanceState::new(mesh.clone(), scope.clone());
        let starts = self
            .handlers
            .iter()
            .filter(|hosted| match (at, hosted.place) {
                (At::System, place) => place == TopicScope::System,
                (At::Workspace(_), place) => place == TopicScope::Workspace,
                (At::Flow(..), _) => hosted.per_flow(),
            })
            .filter_map(|hosted| Some((hosted, self.subscription(&scope, hosted)?)))
            .map(|(hosted, subscription)| self.consume(mesh, &slot, &scope, hosted, subscription));
        let mut consumers = Vec::new();
        let mut fault = None;
        for result in futures::future::join_all(starts).await {
            match result {
                Ok(consumer) => consumers.push(consumer),
                Err(error) => fault = Some(error),
            }
        }
        if let Some(fault) = fault {
            for consumer in consumers {
                consumer.stop().await;
            }
            return Err(fault);
        }
        Ok(Some((slot, consumers)))
    }

    pub(crate) fn scope(&self, at: &At, row: &str) -> Option<InstanceScope> {
        let mut scope = InstanceScope {
            processor: self.id.clone(),
            ..InstanceScope::default()
        };
        match at {
            At::System => {}
            At::Workspace(workspace) => scope.workspace = Some(WorkspaceId::new(workspace).ok()?),
            At::Flow(workspace, flow) => {
                scope.workspace = Some(WorkspaceId::new(workspace).ok()?);
                scope.flow = Some(FlowId::new(flow).ok()?);
                let row = ProcessorRow::read(row)?;
                scope.epoch = row.epoch;
                scope.parameters = row.parameter_texts();
                for (spec, topic) in row.topics {
                    scope.topics.insert(spec, Topic::parse(&topic).ok()?);
                }
                let unread = row.unread.iter();
                scope.unread = unread
                    .filter_map(|topic| Topic::parse(topic).ok())
                    .collect();
            }
        }
        Some(scope)
    }

    /// The topics that are there for the sake of an instance in a workspace alone; none of any other.
    pub(crate) fn topics_of_workspace(&self, at: &At) -> Vec<Topic> {
        let At::Workspace(_) = at else {
            return Vec::new();
        };
        let scope = self.scope(at, "");
        let handlers = self.handlers.iter();
        let of_workspace = handlers.filter(|hosted| hosted.place == TopicScope::Workspace);
        let subscriptions =
            of_workspace.filter_map(|hosted| self.subscription(scope.as_ref()?, hosted));
        subscriptions.map(|of| of.topic).collect()
    }

    fn subscription(&self, scope: &InstanceScope, hosted: &Hosted) -> Option<Subscription> {
        let class = match hosted.handler {
            Handler::Serve(_) => Class::Request,
            Handler::Read(_) => Class::Flow,
        };
        let spec = hosted.spec;
        match hosted.place {
            TopicScope::System => Some(Subscription::service(Topic::system(class, spec), &self.id)),
            TopicScope::Workspace => {
                let topic = Topic::workspace(class, spec, scope.workspace.as_ref()?);
                Some(Subscription::service(topic, &self.id))
            }
            TopicScope::Flow | TopicScope::Own => {
                let (workspace, flow) = (scope.workspace.as_ref()?, scope.flow.as_ref()?);
                let topic = if hosted.place == TopicScope::Flow {
                    scope
                        .topics
                        .get(spec)
                        .filter(|topic| topic.class() == class)?
                        .clone()
                } else {
                    Topic::flow(class, spec, workspace, flow)
                };
                Some(Subscription::flow(
                    topic,
                    &self.id,
                    workspace.as_str(),
                    flow.as_str(),
                    spec,
                ))
            }
        }
    }

    async fn consume(
        &self,
        mesh: &Mesh,
        slot: &Arc<InstanceState>,
        scope: &InstanceScope,
        hosted: &Hosted,
        subscription: Subscription,
    ) -> Result<Box<dyn Consumer>, BusError> {
        let how = Consume {
            prefetch: self.concurrency.min(usize::from(u16::MAX)) as u16,
            claim: self.claim.clone(),
        };
        if hosted.per_flow() {
            slot.counts(&subscription.name);
        }
        let places = usize::from(how.prefetch.max(1));
        let intake = mesh.intakes().add(&self.id, &subscription, places);
        match &hosted.handler {
            Handler::Serve(handler) => {
                let sink = Arc::new(ServeSink {
                    slot: slot.clone(),
                    handler: handler.clone(),
                    limit: self.concurrency,
                    running: Arc::new(AtomicUsize::new(0)),
                    responses: response_topic(scope, hosted.spec, &subscription.topic),
                    subscription: subscription.clone(),
                    intake,
                });
                let consumer = mesh.bus().consume(&subscription, how, sink.clone());
                let consumer = consumer.await?;
                Ok(self.near(mesh, subscription.topic, sink, consumer))
            }
            Handler::Read(handler) => {
                let sink = Arc::new(ConsumeSink {
                    slot: slot.clone(),
                    handler: handler.clone(),
                    subscription: subscription.clone(),
                    keeps: hosted.keeps,
                    stuck: Arc::default(),
                    room: Arc::default(),
                    intake,
                });
                mesh.bus().consume(&subscription, how, sink).await
            }
        }
    }

    /// Has this process ask a server of its own without the broker, as long as no other process serves. Who serves a store is the
    /// broker's to decide, which has its claim.
    fn near(
        &self,
        mesh: &Mesh,
        topic: Topic,
        sink: Arc<ServeSink>,
        consumer: Box<dyn Consumer>,
    ) -> Box<dyn Consumer> {
        let is_near =
            mesh.options().near && mesh.rules().own_question_queues && !mesh.bus().in_process();
        if !is_near || self.claim.is_some() {
            return consumer;
        }
        let sole = mesh.presence().sole(&self.id);
        let alone = Box::new(move || sole.holds());
        let near = Arc::new(NearSink(sink));
        let near = mesh.port().near().add(topic, near, alone);
        Box::new(NearConsumer::new(consumer, near))
    }
}

/// Whether two rows differ in parameters only, so that the instance can stay attached.
pub(crate) fn same_wiring(old: &str, new: &str) -> bool {
    match (ProcessorRow::read(old), ProcessorRow::read(new)) {
        (Some(old), Some(new)) => {
            old.epoch == new.epoch && old.topics == new.topics && old.unread == new.unread
        }
        _ => false,
    }
}
