//! One [`Mesh`] per process: its inbox, its questions and answers, its records, its hosted processors.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tg_schemas::codec::{self, ContentType};
use tg_schemas::processors::READ_BASES;
use tg_schemas::{
    Class, Error, ErrorCode, Frame, Headers, Message, Reply, Subscription, Topic, WorkspaceId,
};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::answer::{Answer, Out, ReplyAddress};
use crate::asker::{Asker, NewQuestion, control_topic};
use crate::config_view::{COLLECTION, ConfigView, WORKSPACES};
use crate::config_watch::{self, Watched};
use crate::deadline::{Deadline, GAP, QUESTION, STREAM};
use crate::holder::{Holder, Standing};
use crate::library_texts;
use crate::presence::{self, PresenceView};
use crate::processor::Processor;
use crate::put_aside;
use crate::runtime::Runtime;
use crate::tally::Tally;
use tg_bus::Handover;
use tg_bus::{
    Bus, BusError, Consume, Consumer, Delivery, Envelope, Link, Mode, Promise, Routed, Sink, Target,
};
use tg_bus::{TaskKind, Tasks};

/// Settings of a process.
#[derive(Debug, Clone)]
pub struct MeshOptions {
    /// Name of the process in logs and presence; part of its inbox name.
    pub name: String,
    /// How long a record may wait for the bus to come back before its writer is told.
    pub record_patience: Duration,
}

impl Default for MeshOptions {
    fn default() -> Self {
        Self {
            name: "threadgraph".to_owned(),
            record_patience: Duration::from_secs(60),
        }
    }
}

/// Options of a question or record.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// Absolute deadline; absent: 600 s, an hour for a stream.
    pub deadline: Option<Deadline>,
    /// Ends the question.
    pub cancel: CancellationToken,
    /// The answer is streamed: the longer deadline applies.
    pub streaming: bool,
    /// The work goes on when the answer is dropped.
    pub detach: bool,
    /// Epoch of the flow.
    pub epoch: Option<u64>,
    /// Workspace.
    pub workspace: Option<WorkspaceId>,
    /// Question that caused this one.
    pub parent: Option<Arc<str>>,
    /// How deep the chain of questions is.
    pub depth: u32,
    /// Thread of work.
    pub thread: Option<String>,
    /// Caller at the edge.
    pub user_id: Option<String>,
    /// W3C trace context.
    pub traceparent: Option<String>,
    /// Id of the question; a random one if absent.
    pub id: Option<String>,
    /// A record that no queue takes is dropped, also where this release has a reader for its kind.
    pub droppable: bool,
}

/// How long the bus may take for one message.
const PUBLISH: Duration = Duration::from_secs(5);
/// How long each step of leaving the mesh may take.
const LEAVE: Duration = Duration::from_secs(2);
/// Questions deeper than this are a loop.
const MAX_DEPTH: u32 = 32;

/// A process's place in the mesh. Cheap to clone.
#[derive(Clone)]
pub struct Mesh(Arc<Inner>);

struct Inner {
    bus: Arc<dyn Bus>,
    inbox: Arc<str>,
    options: MeshOptions,
    tasks: Tasks,
    stopping: CancellationToken,
    asker: Asker,
    holder: Holder,
    config: ConfigView,
    watched: Arc<Watched>,
    presence: PresenceView,
    runtime: Runtime,
    tally: Tally,
    consumers: Mutex<Vec<Box<dyn Consumer>>>,
    responses: tokio::sync::Mutex<std::collections::HashMap<Topic, Box<dyn Consumer>>>,
    reconnected: Mutex<Option<Instant>>,
}

impl Mesh {
    /// Joins the mesh: opens the inbox, listens to control and config notices.
    pub async fn start(bus: Arc<dyn Bus>, options: MeshOptions) -> Result<Self, Error> {
        let inbox: Arc<str> = format!(
            "{}.inbox.{}.{}",
            bus.mode().prefix().unwrap_or("tg"),
            options.name,
            uuid::Uuid::new_v4().simple()
        )
        .into();
        let mesh = Self(Arc::new(Inner {
            presence: PresenceView::new(inbox.clone()),
            bus,
            inbox,
            options,
            tasks: Tasks::default(),
            stopping: CancellationToken::new(),
            asker: Asker::default(),
            holder: Holder::default(),
            config: ConfigView::default(),
            watched: Arc::default(),
            runtime: Runtime::default(),
            tally: Tally::default(),
            consumers: Mutex::default(),
            responses: tokio::sync::Mutex::default(),
            reconnected: Mutex::default(),
        }));
        let inbox = mesh
            .bus()
            .open_inbox(mesh.inbox(), Arc::new(Inbox(mesh.clone())))
            .await?;
        let control = Subscription::service(control_topic(), "control");
        let consume = Consume { prefetch: 64 };
        let control = mesh
            .bus()
            .consume(&control, consume, Arc::new(Control(mesh.clone())))
            .await?;
        let mut queues = vec![put_aside::subscription()];
        if mesh.bus().mode() == Mode::Native {
            queues.push(library_texts::subscription());
        }
        mesh.bus().declare(&[put_aside::topic()], &queues).await?;
        mesh.0.consumers.lock().extend([inbox, control]);
        mesh.0.watched.add([WORKSPACES.1.to_owned()]);
        let (applied, changes) = mpsc::channel(64);
        let m = mesh.clone();
        let (view, watched) = (m.0.config.clone(), m.0.watched.clone());
        mesh.spawn(
            TaskKind::Background,
            config_watch::run(m, view, watched, applied),
        );
        let m = mesh.clone();
        mesh.spawn(TaskKind::Background, async move {
            m.0.runtime.run(&m, changes).await
        });
        let m = mesh.clone();
        mesh.spawn(TaskKind::Background, async move {
            m.0.asker.watch(m.clone()).await
        });
        let m = mesh.clone();
        mesh.spawn(TaskKind::Background, async move {
            m.0.holder.watch(m.clone()).await
        });
        mesh.spawn(TaskKind::Background, presence::run(mesh.clone()));
        mesh.spawn(TaskKind::Background, mesh.clone().follow_link());
        Ok(mesh)
    }

    /// Hosts a processor: subscribes its handlers wherever config says. Returns once what can be
    /// subscribed now is; an exclusive processor whose store another process owns stands by.
    pub async fn host(&self, processor: Processor) -> Result<(), Error> {
        let types = processor.watches.iter().map(|kind| (*kind).to_owned());
        let rows = [
            format!("processor:{}", processor.id),
            "flow".to_owned(),
            COLLECTION.to_owned(),
        ];
        let flows = processor
            .has_flow_handlers()
            .then_some(rows)
            .into_iter()
            .flatten();
        self.0.watched.add(types.chain(flows));
        self.0.runtime.host(self, processor).await;
        Ok(())
    }

    /// Asks a question. Nothing is sent before the first part is awaited.
    pub fn ask<Q: Message, R: Reply>(&self, topic: &Topic, question: &Q, ask: Ask) -> Answer<R> {
        let pending = self.question(topic, question, ask).map_err(Some);
        Answer {
            mesh: self.clone(),
            pending,
            finished: false,
            kind: PhantomData,
        }
    }

    fn question<Q: Message>(
        &self,
        topic: &Topic,
        question: &Q,
        ask: Ask,
    ) -> Result<Arc<crate::asker::Pending>, Error> {
        if topic.class() != Class::Request {
            return Err(Error::new(
                ErrorCode::BadRequest,
                "topic: not a request topic",
            ));
        }
        if ask.depth > MAX_DEPTH {
            return Err(Error::new(ErrorCode::Internal, "too many nested questions"));
        }
        let body = codec::encode(question, ContentType::Json)?;
        let longest = if ask.streaming { STREAM } else { QUESTION };
        let deadline = ask.deadline.unwrap_or_else(|| Deadline::after(longest));
        let id: Arc<str> = ask
            .id
            .unwrap_or_else(|| uuid::Uuid::new_v4().to_string())
            .into();
        let foreign = self.bus().mode() == Mode::Interop;
        let headers = if foreign {
            Headers {
                id: Some(id.to_string()),
                ..Headers::default()
            }
        } else {
            Headers {
                id: Some(id.to_string()),
                from: Some(self.inbox().to_owned()),
                reply_to: Some(self.inbox().to_owned()),
                frame: Some(Frame::Ask),
                deadline: Some(deadline.millis()),
                detach: ask.detach,
                workspace: ask.workspace.map(Into::into),
                epoch: ask.epoch,
                thread: ask.thread,
                parent: ask.parent.map(|parent| parent.to_string()),
                depth: (ask.depth > 0).then_some(ask.depth),
                user_id: ask.user_id,
                traceparent: ask.traceparent,
                ..Headers::default()
            }
        };
        Ok(self.0.asker.open(NewQuestion {
            id,
            target: Target::Topic(topic.clone()),
            question: Envelope {
                headers,
                content_type: ContentType::Json,
                handover: Handover::new(self.bus().in_process(), &body, || question.clone()),
                body,
            },
            deadline,
            gap: GAP,
            cancel: ask.cancel,
            detach: ask.detach,
            foreign,
        }))
    }

    /// Writes a record. `Ok` means: durable, and in the queue of every reader that the table names.
    /// Waits (bounded) for a bus that is away.
    pub async fn record<M: Message>(
        &self,
        topic: &Topic,
        record: &M,
        ask: Ask,
    ) -> Result<(), Error> {
        let interop = self.bus().mode() == Mode::Interop;
        let content_type = if interop {
            ContentType::Json
        } else {
            ContentType::Avro
        };
        let body = codec::encode(record, content_type)?;
        let headers = if interop {
            Headers::default()
        } else {
            Headers {
                id: ask.id.or(ask.parent.map(|parent| parent.to_string())),
                from: Some(self.inbox().to_owned()),
                workspace: ask.workspace.map(Into::into),
                epoch: ask.epoch,
                thread: ask.thread,
                user_id: ask.user_id,
                traceparent: ask.traceparent,
                schema: Some(codec::fingerprint::<M>()),
                ..Headers::default()
            }
        };
        let envelope = Envelope {
            headers,
            content_type,
            handover: Handover::new(self.bus().in_process(), &body, || record.clone()),
            body,
        };
        let base = topic.name().split(':').next().unwrap_or_default();
        let must_be_read = !ask.droppable && READ_BASES.contains(&base);
        let target = Target::Topic(topic.clone());
        self.publish_record(&target, envelope, must_be_read, &ask.cancel)
            .await
    }

    async fn publish_record(
        &self,
        target: &Target,
        envelope: Envelope,
        must_be_read: bool,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let until = Instant::now() + self.0.options.record_patience;
        let mut link = self.bus().link();
        let mut unread = 0;
        loop {
            match self
                .publish(target, envelope.clone(), Promise::Confirmed)
                .await
            {
                Ok(Routed::Queued) => return Ok(()),
                Ok(Routed::Nowhere) if !must_be_read => return Ok(()),
                Ok(Routed::Nowhere) => {
                    unread += 1;
                    if unread > 10 {
                        return Err(Error::new(
                            ErrorCode::NobodyServes,
                            "nobody takes this record",
                        ));
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                Err(BusError::Down) if Instant::now() < until => {
                    tokio::select! {
                        _ = link.wait_for(|link| !matches!(link, Link::Down)) => {}
                        () = tokio::time::sleep_until(until) => {}
                        () = cancel.cancelled() => return Err(BusError::Down.into()),
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                Err(fault) => return Err(fault.into()),
            }
        }
    }

    /// Sends a hint to everybody who listens.
    pub async fn notify<M: Message>(&self, topic: &Topic, hint: &M) -> Result<(), Error> {
        let body = codec::encode(hint, ContentType::Json)?;
        let envelope = Envelope {
            body,
            ..Envelope::default()
        };
        self.bus()
            .publish(&Target::Topic(topic.clone()), envelope, Promise::Confirmed)
            .await?;
        Ok(())
    }

    /// Goes on with an answer that was released. `None` while this process still holds it.
    pub fn resume<R: Reply>(&self, address: ReplyAddress) -> Option<Out<R>> {
        let held = self.0.holder.open(self, &address)?;
        Some(Out {
            mesh: self.clone(),
            held,
            ended: false,
            kind: PhantomData,
        })
    }

    /// Asks the asker of an answer that another process began, and that is to be resumed here, where it
    /// stands. From then on it listens to this process only. `None` if it says nothing for this long.
    pub async fn standing(&self, address: &ReplyAddress, patience: Duration) -> Option<Standing> {
        if address.foreign {
            return None;
        }
        self.0.holder.standing(self, address, patience).await
    }

    /// The watched configuration.
    pub fn config(&self) -> &ConfigView {
        &self.0.config
    }

    /// What all processes say of themselves.
    pub fn presence(&self) -> &PresenceView {
        &self.0.presence
    }

    /// The bus.
    pub fn bus(&self) -> &Arc<dyn Bus> {
        &self.0.bus
    }

    /// Starts a task.
    pub fn spawn<F: Future<Output = ()> + Send + 'static>(&self, kind: TaskKind, future: F) {
        self.0.tasks.spawn(kind, future);
    }

    /// Cancelled when the process begins to stop: what only waits gives up, what is in progress may end.
    pub fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }

    /// Cancelled when the process stops and nothing is waited for any more.
    pub fn shutdown(&self) -> &CancellationToken {
        self.0.tasks.shutdown()
    }

    /// Questions open and answers under way, for gauges and drains.
    pub fn load(&self) -> (usize, usize) {
        (self.0.asker.open_count(), self.0.holder.open_count())
    }

    /// Whether the asker of an id gave up lately.
    pub fn is_cancelled(&self, id: &str) -> bool {
        self.0.holder.is_cancelled(id)
    }

    /// Stops serving: takes no new work, waits for what is in progress, leaves the mesh. All waiting
    /// together ends after `patience`; leaving takes a few seconds more at most.
    pub async fn stop(&self, patience: Duration) {
        let end = Instant::now() + patience;
        self.stopping().cancel();
        self.0.runtime.detach_all(self, end).await;
        let _ = tokio::time::timeout_at(end, self.0.tasks.handlers_idle()).await;
        let consumers = std::mem::take(&mut *self.0.consumers.lock());
        let _ = tokio::time::timeout(LEAVE, async {
            presence::tell(self, "bye", || Some(Vec::new())).await;
            futures::future::join_all(consumers.iter().map(|consumer| consumer.stop())).await;
        })
        .await;
        self.shutdown().cancel();
        let _ = tokio::time::timeout(LEAVE, self.0.tasks.finish()).await;
        let _ = tokio::time::timeout(LEAVE, self.0.runtime.release_all()).await;
        if tokio::time::timeout(LEAVE, self.bus().close())
            .await
            .is_err()
        {
            tracing::warn!("the bus did not close in time");
        }
    }

    /// Publishes within a bound: a bus that neither takes nor refuses a message is as good as away. What is
    /// then sent again is recognised by its id and number.
    pub(crate) async fn publish(
        &self,
        target: &Target,
        envelope: Envelope,
        promise: Promise,
    ) -> Result<Routed, BusError> {
        let work = self.bus().publish(target, envelope, promise);
        tokio::time::timeout(PUBLISH, work)
            .await
            .unwrap_or_else(|_| {
                metrics::counter!("tg_publish_stuck_total").increment(1);
                Err(BusError::Down)
            })
    }

    pub(crate) fn inbox(&self) -> &str {
        &self.0.inbox
    }

    pub(crate) fn asker(&self) -> &Asker {
        &self.0.asker
    }

    pub(crate) fn holder(&self) -> &Holder {
        &self.0.holder
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.0.tally
    }

    pub(crate) fn shutdown_child(&self) -> CancellationToken {
        self.shutdown().child_token()
    }

    pub(crate) fn reconnected_within(&self, span: Duration) -> bool {
        self.0
            .reconnected
            .lock()
            .is_some_and(|at| at.elapsed() < span)
    }

    /// Interop: listens on a response topic before anything is asked. Once per topic and process.
    pub(crate) async fn listen_for_responses(&self, topic: &Topic) -> Result<(), BusError> {
        let mut open = self.0.responses.lock().await;
        if open.contains_key(topic) {
            return Ok(());
        }
        let subscription = Subscription::service(topic.clone(), "responses");
        let sink = Arc::new(Inbox(self.clone()));
        let consumer = self
            .bus()
            .consume(&subscription, Consume { prefetch: 256 }, sink)
            .await?;
        open.insert(topic.clone(), consumer);
        Ok(())
    }

    async fn follow_link(self) {
        let mut link = self.bus().link();
        loop {
            if matches!(*link.borrow_and_update(), Link::Up { generation } if generation > 1) {
                *self.0.reconnected.lock() = Some(Instant::now());
            }
            if link.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Takes frames addressed to this process, as asker and as holder.
struct Inbox(Mesh);

impl Sink for Inbox {
    fn deliver(&self, mut delivery: Delivery) {
        let envelope = std::mem::take(&mut delivery.envelope);
        match envelope.headers.frame {
            Some(Frame::Resend | Frame::Credit | Frame::Cancel) => {
                self.0.holder().deliver(&self.0, &envelope.headers);
            }
            _ => self.0.asker().deliver(&self.0, envelope),
        }
        delivery.ack();
    }
}

/// Takes broadcasts: cancels and presence.
struct Control(Mesh);

impl Sink for Control {
    fn deliver(&self, mut delivery: Delivery) {
        let envelope = std::mem::take(&mut delivery.envelope);
        match envelope.headers.frame {
            Some(Frame::Cancel) => self.0.holder().deliver(&self.0, &envelope.headers),
            _ => presence::deliver(&self.0, &envelope),
        }
        delivery.ack();
    }
}
