//! What a handler sees beside its message: where it runs, for whom, until when, and how to ask others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tg_schemas::msg::Metadata;
use tg_schemas::processors::{Asks, Kind, Spec, TopicScope, Writes, processor};
use tg_schemas::sections::Sections;
use tg_schemas::{
    CountedBy, Error, ErrorCode, FlowId, Headers, Message, Reply, Topic, WorkspaceId, WorkspaceKey,
};
use tokio_util::sync::CancellationToken;

use crate::config_view::ConfigView;
use crate::mesh::Mesh;
use crate::middleware::Follow;
use crate::receipt::RecordReceipt;
use tg_rpc::Answer;
use tg_rpc::Ask;
use tg_rpc::Relay;
use tg_rpc::Responder;
use tg_rpc::deadline::Deadline;
use tg_telemetry::{Place, Span, SpanKind};

/// Where an instance of a processor runs.
#[derive(Debug, Clone, Default)]
pub struct InstanceScope {
    /// Processor id.
    pub processor: String,
    /// Workspace; `None` for the system.
    pub workspace: Option<WorkspaceId>,
    /// Flow; `None` for services that are not per flow.
    pub flow: Option<FlowId>,
    /// Epoch of the flow, 0 if it has none.
    pub epoch: u64,
    /// Resolved topics by spec name.
    pub topics: BTreeMap<String, Topic>,
    /// Resolved parameters.
    pub parameters: BTreeMap<String, String>,
    /// Record topics that nobody of the flow reads: a record on them may be dropped.
    pub unread: BTreeSet<Topic>,
}

/// Writes a warning about a message, given its [`Cx`], with what people know it by: processor, workspace, flow and request.
#[macro_export]
macro_rules! warn_of {
    ($cx:expr, $($said:tt)+) => {{
        let cx: &$crate::Cx = $cx;
        $crate::tracing::warn!(
            processor = %cx.scope.processor,
            workspace = cx.scope.workspace.as_ref().map($crate::tracing::field::display),
            flow = cx.scope.flow.as_ref().map($crate::tracing::field::display),
            request = cx.request(),
            $($said)+
        )
    }};
}

/// The context of one message.
#[derive(Clone)]
pub struct Cx {
    /// This process's mesh.
    pub mesh: Mesh,
    /// Where the handler runs.
    pub scope: Arc<InstanceScope>,
    /// Id of the question, or of the question that caused the record; may be empty.
    pub id: Arc<str>,
    /// Headers of the message.
    pub headers: Arc<Headers>,
    /// When nobody waits any more.
    pub deadline: Deadline,
    /// Cancelled when the asker gave up or the process stops.
    pub cancel: CancellationToken,
    /// What follows the message through its handler.
    pub(crate) follow: Option<Arc<dyn Follow>>,
    /// What is reported to the writer of a record.
    pub(crate) receipt: Option<Arc<RecordReceipt>>,
    /// The trace context that the message came with, where the headers have that of a span of its handler.
    pub(crate) came_with: Option<Arc<str>>,
}

impl Cx {
    /// Workspace of the instance, as text; empty for the system.
    pub fn workspace(&self) -> &str {
        self.scope
            .workspace
            .as_ref()
            .map_or("", WorkspaceId::as_str)
    }

    /// What stores keep the workspace's data under: the generation that the message was sent in, else the
    /// present one. Empty for the system.
    pub fn workspace_key(&self) -> WorkspaceKey {
        let workspace = self.workspace();
        let generation = self
            .headers
            .generation
            .unwrap_or_else(|| self.config().generation(workspace));
        WorkspaceKey::new(workspace, generation)
    }

    /// What the message says of a collection that it is for: the generation in which it was sent, negative where the
    /// collection was not registered. `None`: nothing is said of it, as by foreign senders and in questions.
    pub fn sent_for(&self, collection: &str) -> Option<i64> {
        let named = self.headers.collection.as_deref() == Some(collection);
        self.headers.collection_generation.filter(|_| named)
    }

    /// Options of a record: one for the collection of the message is of the same generation.
    fn record_options(&self, collection: Option<&str>) -> Ask {
        let mut options = self.ask_options();
        if let Some(collection) = collection
            && let Some(generation) = self.sent_for(collection)
        {
            options.collection = Some(collection.to_owned());
            options.collection_generation = Some(generation);
        }
        self.mesh.stamped(options, collection)
    }

    /// Flow of the instance, as text; empty outside flows.
    pub fn flow(&self) -> &str {
        self.scope.flow.as_ref().map_or("", FlowId::as_str)
    }

    /// Id of the client's request behind the message, if there is one: for the log.
    pub fn request(&self) -> Option<&str> {
        self.headers.request_id.as_deref()
    }

    /// A parameter of the flow.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.scope
            .parameters
            .get(name)
            .map(String::as_str)
            .filter(|text| !text.is_empty())
    }

    /// The watched configuration.
    pub fn config(&self) -> &ConfigView {
        self.mesh.config()
    }

    /// Topic of a spec of this instance.
    ///
    /// # Errors
    /// `not-implemented` when the flow names no topic for the spec; outside a flow or workspace that the spec needs,
    /// `internal`.
    ///
    /// # Panics
    /// In debug builds, when the processor has no such spec.
    #[track_caller]
    pub fn topic<K: Kind>(&self, spec: Spec<K>) -> Result<Topic, Error> {
        let id = self.scope.processor.as_str();
        debug_assert!(
            processor(id).is_none_or(|declared| declared.has(&spec.row())),
            "{id} has no spec '{}' of that kind",
            spec.name
        );
        let outside = |what: &str| Error::new(ErrorCode::Internal, format!("not inside a {what}"));
        match (spec.place, &self.scope.workspace, &self.scope.flow) {
            (TopicScope::Flow, ..) => self.scope.topics.get(spec.name).cloned().ok_or_else(|| {
                let text = format!("this flow has no '{}'", spec.name);
                Error::new(ErrorCode::NotImplemented, text)
            }),
            (TopicScope::Own, Some(workspace), Some(flow)) => Ok(spec.of_flow(workspace, flow)),
            (TopicScope::Own, ..) => Err(outside("flow")),
            (TopicScope::Workspace, Some(workspace), _) => Ok(spec.of_workspace(workspace)),
            (TopicScope::Workspace, ..) => Err(outside("workspace")),
            (TopicScope::System, ..) => Ok(spec.of_system()),
        }
    }

    /// Whether the flow names a topic for the spec.
    pub fn has<K: Kind>(&self, spec: Spec<K>) -> bool {
        self.scope.topics.contains_key(spec.name)
    }

    /// Asks the service behind one of this instance's specs. Deadline, cancel, thread and trace pass down.
    ///
    /// # Errors
    /// When the flow lacks the spec.
    pub fn ask<Q: Message, R: Reply>(
        &self,
        spec: Spec<Asks<Q, R>>,
        question: &Q,
    ) -> Result<Answer<R>, Error> {
        self.ask_with(spec, question, self.ask_options())
    }

    /// As [`Cx::ask`], with other options than [`Cx::ask_options`].
    ///
    /// # Errors
    /// When the flow lacks the spec.
    pub fn ask_with<Q: Message, R: Reply>(
        &self,
        spec: Spec<Asks<Q, R>>,
        question: &Q,
        options: Ask,
    ) -> Result<Answer<R>, Error> {
        Ok(self.mesh.ask(&self.topic(spec)?, question, options))
    }

    /// Asks on a topic.
    pub fn ask_topic<Q: Message, R: Reply>(&self, topic: &Topic, question: &Q) -> Answer<R> {
        self.mesh.ask(topic, question, self.ask_options())
    }

    /// Passes the question on to the service behind a spec, which answers the asker itself: one hop less for each
    /// part. Only where the asker takes that ([`Cx::forwards`]).
    ///
    /// # Errors
    /// When the flow lacks the spec, or the asker cannot be notified that nobody serves it.
    pub async fn forward<Q: Message, A: Reply, R: Reply>(
        &self,
        spec: Spec<Asks<Q, A>>,
        question: &Q,
        out: Responder<R>,
    ) -> Result<(), Error> {
        self.forward_on(&self.topic(spec)?, question, out).await
    }

    /// Passes the question on to who serves a topic, as [`Cx::forward`] does.
    ///
    /// # Errors
    /// When the asker cannot be notified that nobody serves it.
    pub async fn forward_on<Q: Message, R: Reply>(
        &self,
        topic: &Topic,
        question: &Q,
        mut out: Responder<R>,
    ) -> Result<(), Error> {
        let mut options = self.ask_options();
        options.parent = self.headers.parent.as_deref().map(Into::into);
        let address = out.offer();
        let sent = self.mesh.forward(topic, question, &address, options).await;
        let Err(error) = sent else {
            out.hand_over();
            return Ok(());
        };
        match self.mesh.resume::<R>(address) {
            Some(mut out) => out.send(R::failure(error)).await,
            None => Ok(()),
        }
    }

    /// Whether the asker takes its answer from another service in that one's form.
    pub fn forwards(&self) -> bool {
        self.headers.forward
    }

    /// Options that pass this context down.
    pub fn ask_options(&self) -> Ask {
        Ask {
            deadline: Some(self.deadline),
            cancel: self.cancel.clone(),
            epoch: (self.scope.epoch > 0).then_some(self.scope.epoch),
            workspace: self.scope.workspace.clone(),
            generation: self
                .scope
                .workspace
                .as_ref()
                .map(|_| self.workspace_key().generation()),
            parent: (!self.id.is_empty()).then(|| self.id.clone()),
            depth: self.headers.depth.unwrap_or(0) + 1,
            thread: self.headers.thread.clone(),
            user_id: self.headers.user_id.clone(),
            credential: self.headers.credential.clone(),
            user_context: self.headers.user_context.clone(),
            roles: self.headers.roles.clone(),
            counted: self.counted(),
            traceparent: self.headers.traceparent.clone(),
            request_id: self.headers.request_id.clone(),
            ..Ask::default()
        }
    }

    /// Who counts what is asked of models for the message: as it says; what is asked for a record counts for the workspace.
    pub fn counted(&self) -> Option<CountedBy> {
        let of_record = self.headers.frame.is_none().then_some(CountedBy::Record);
        self.headers.counted.or(of_record)
    }

    /// The same message where a run of the agent counts what is asked of models with it.
    #[must_use]
    pub fn counted_by_run(mut self) -> Self {
        Arc::make_mut(&mut self.headers).counted = Some(CountedBy::Run);
        self
    }

    /// A span of what is done for the message.
    pub fn span(&self, kind: SpanKind, name: impl FnOnce() -> String) -> Span {
        let traceparent = self.headers.traceparent.as_deref();
        self.mesh.tracer().child(kind, traceparent, name)
    }

    /// Where in a trace the message is worked on, for what knows no message.
    pub fn place(&self) -> Place {
        self.mesh
            .tracer()
            .place(self.headers.traceparent.as_deref())
    }

    /// The same message as it is worked on within a span: what is asked and written with it belongs to that.
    #[must_use]
    pub fn within(mut self, span: &Span) -> Self {
        let Some(traceparent) = span.traceparent() else {
            return self;
        };
        let headers = Arc::make_mut(&mut self.headers);
        let before = headers.traceparent.replace(traceparent);
        self.came_with = self.came_with.or_else(|| before.map(Into::into));
        self
    }

    /// The same message outside of the spans of its handler: what is asked and written with it belongs to whoever sent the
    /// message, so that it has its place in the trace also when this process dies with spans that had not ended.
    #[must_use]
    pub fn outliving(&self) -> Self {
        let mut own = self.clone();
        if let Some(before) = own.came_with.take() {
            Arc::make_mut(&mut own.headers).traceparent = Some(before.to_string());
        }
        own
    }

    /// What follows the message through its handler, if anything does.
    pub fn follow(&self) -> Option<&dyn Follow> {
        self.follow.as_deref()
    }

    /// The record is settled, but nothing of it, or not all, was kept, and that is no error: its writer is notified, where it
    /// asked.
    pub fn not_kept(&self, why: Error) {
        if let Some(receipt) = &self.receipt {
            receipt.not_kept(why);
        }
    }

    /// What a record says that is made of this one ([`Cx::record_for`]), so that who keeps that one reports to the writer of this
    /// one what became of it. `None` where the writer did not ask.
    pub fn pass_on(&self) -> Option<String> {
        self.receipt.as_ref().map(|receipt| receipt.pass_on())
    }

    /// Writes a record to a topic; durable when `Ok`, or dropped where nobody of the flow reads it. What follows the
    /// message may give the record an id that depends on how many were written to the topic before: write in the same
    /// order each time.
    ///
    /// # Errors
    /// As [`tg_rpc::Peer::record`].
    pub async fn record_on<M: Message>(&self, topic: &Topic, record: &M) -> Result<(), Error> {
        self.write_record(topic, record, None).await
    }

    async fn write_record<M: Message>(
        &self,
        topic: &Topic,
        record: &M,
        receipt: Option<String>,
    ) -> Result<(), Error> {
        let mut options = self.record_options(record.for_collection());
        options.droppable = self.scope.unread.contains(topic);
        options.receipt = receipt;
        let Some(follow) = &self.follow else {
            return self.mesh.record(topic, record, options).await;
        };
        let options = follow.stamp(topic, options);
        let id = options.id.clone();
        self.mesh.record(topic, record, options).await?;
        follow.wrote(&self.mesh, topic, id).await
    }

    /// Writes several messages as one record, to the first of these relays; `about` is what those of the pipeline are
    /// about. Not for what is followed: each record of a job is counted.
    ///
    /// # Errors
    /// As [`tg_rpc::Peer::record_together`].
    pub async fn record_together(
        &self,
        relays: &[Relay],
        sections: Sections,
        about: Option<&Metadata>,
    ) -> Result<(), Error> {
        self.mesh
            .record_together(
                relays,
                sections,
                self.record_options(about.map(Metadata::collection)),
            )
            .await
    }

    /// Whether a record on a topic has a reader in this flow.
    pub fn is_read(&self, topic: &Topic) -> bool {
        !self.scope.unread.contains(topic)
    }

    /// Writes a record to the topic of a spec, as [`Cx::record_on`] does.
    ///
    /// # Errors
    /// When the flow lacks the spec, and as [`tg_rpc::Peer::record`].
    pub async fn record<M: Message>(&self, spec: Spec<Writes<M>>, record: &M) -> Result<(), Error> {
        self.record_on(&self.topic(spec)?, record).await
    }

    /// As [`Cx::record`], of one that its writer goes on with: it is not copied for readers in this process.
    ///
    /// # Errors
    /// As [`Cx::record`].
    pub async fn record_shared<M: Message>(
        &self,
        spec: Spec<Writes<M>>,
        record: &Arc<M>,
    ) -> Result<(), Error> {
        let topic = self.topic(spec)?;
        if self.follow.is_some() {
            return self.record_on(&topic, &**record).await;
        }
        let mut options = self.record_options(record.for_collection());
        options.droppable = self.scope.unread.contains(&topic);
        self.mesh.record_shared(&topic, record, options).await
    }

    /// As [`Cx::record`], for whoever wrote what it is made of: `receipts` are what [`Cx::pass_on`] gave for these records,
    /// separated by spaces.
    ///
    /// # Errors
    /// As [`Cx::record`].
    pub async fn record_for<M: Message>(
        &self,
        spec: Spec<Writes<M>>,
        record: &M,
        receipts: Option<String>,
    ) -> Result<(), Error> {
        self.write_record(&self.topic(spec)?, record, receipts)
            .await
    }
}
