//! A process's place among others: its inbox, its questions and answers, its records.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tg_bus::pause::ONCE_UP;
use tg_bus::{
    Bus, BusError, Consumer, Delivery, Envelope, Handover, Link, PublishMode, Routed, Sink, Target,
    TaskKind, WireRules,
};
use tg_schemas::codec::{self, ContentType};
use tg_schemas::limits;
use tg_schemas::processors;
use tg_schemas::{Error, ErrorCode, Frame, Headers, Message, Reply, Topic};
use tg_telemetry::{SpanKind, Tracer};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::address::{AskerState, ReplyAddress};
use crate::answer::Answer;
use crate::ask::Ask;
use crate::awaited::AwaitedReceipts;
use crate::client::{NewQuestion, RequestClient};
use crate::deadline::Deadline;
use crate::port::Port;
use crate::receipts::ReceiptSender;
use crate::relays::Relays;
use crate::responder::Responder;
use crate::server::ReplyServer;

/// How often a record is published again that no queue took, though it must be read, and the pause before.
pub(crate) const UNREAD: u32 = 10;
pub(crate) const UNREAD_PAUSE: Duration = Duration::from_millis(100);
/// How often what something accepted leads to is tried again while there is no room for it, and for how long.
const ROOM_PAUSE: Duration = Duration::from_millis(250);
const ROOM_PATIENCE: Duration = Duration::from_secs(10);
/// A record says at most that it is this far from what was new.
const FAR: u32 = 8;

/// Settings of a peer.
#[derive(Debug, Clone)]
pub struct PeerOptions {
    /// Name of the process in logs and presence; part of its inbox name.
    pub name: String,
    /// How long a record may wait for the bus to come back before its writer gets an error.
    pub record_patience: Duration,
    /// Stores of this process that serve although another store of their name served before.
    pub adopt_stores: Vec<String>,
    /// Bytes of ended answers that are kept for repeats.
    pub repeats: usize,
    /// Bytes of records that wait for all who look on.
    pub taps: usize,
    /// Memory that large questions in progress may take in this process, in bytes.
    pub questions: usize,
    /// Questions to a processor without a store do not pass through the broker where this process alone serves it.
    pub near: bool,
    /// Who starts the spans of this process.
    pub tracer: Tracer,
}

impl Default for PeerOptions {
    fn default() -> Self {
        Self {
            name: "threadgraph".to_owned(),
            record_patience: Duration::from_secs(60),
            adopt_stores: Vec::new(),
            repeats: limits::REPEATS,
            taps: 256 << 20,
            questions: 256 << 20,
            near: false,
            tracer: Tracer::default(),
        }
    }
}

/// A process among others on a bus. Cheap to clone.
#[derive(Clone)]
pub struct Peer(Arc<Inner>);

struct Inner {
    port: Port,
    options: PeerOptions,
    client: RequestClient,
    server: ReplyServer,
    relays: Relays,
    awaited: AwaitedReceipts,
    receipts: ReceiptSender,
}

/// The error for the writer of a record that must be read and that no queue takes.
pub(crate) fn nobody_reads() -> Error {
    Error::new(ErrorCode::NobodyServes, "no process accepts this record")
}

impl Peer {
    /// Joins a bus: opens the inbox. The consumer lives as long as the peer is to be reached.
    ///
    /// # Errors
    /// When the bus does not take the inbox.
    pub async fn join(
        bus: Arc<dyn Bus>,
        options: PeerOptions,
    ) -> Result<(Self, Box<dyn Consumer>), Error> {
        let inbox = format!(
            "{}.inbox.{}.{}",
            bus.rules().prefix.unwrap_or("tg"),
            options.name,
            uuid::Uuid::new_v4().simple()
        );
        let port = Port::new(bus, inbox.into());
        let peer = Self(Arc::new(Inner {
            client: RequestClient::new(port.clone()),
            server: ReplyServer::new(port.clone(), options.repeats),
            awaited: AwaitedReceipts::new(port.inbox().into()),
            receipts: ReceiptSender::new(port.clone()),
            options,
            port,
            relays: Relays::default(),
        }));
        let sink = Arc::new(Inbox {
            client: peer.0.client.clone(),
            server: peer.0.server.clone(),
            awaited: peer.0.awaited.clone(),
        });
        let port = peer.port();
        let inbox = port.bus().open_inbox(port.inbox(), sink).await?;
        let background = TaskKind::Background;
        port.spawn(background, peer.0.client.clone().watch());
        port.spawn(background, peer.0.server.clone().watch());
        port.spawn(background, port.clone().follow_link());
        Ok((peer, inbox))
    }

    /// What this process was joined with.
    pub fn options(&self) -> &PeerOptions {
        &self.0.options
    }

    /// Who starts the spans of this process.
    pub fn tracer(&self) -> &Tracer {
        &self.0.options.tracer
    }

    pub(crate) fn relays(&self) -> &Relays {
        &self.0.relays
    }

    /// How long a record waits for a bus that is away.
    pub(crate) fn record_patience(&self) -> Duration {
        self.0.options.record_patience
    }

    /// What both ends of a question stand on.
    pub fn port(&self) -> &Port {
        &self.0.port
    }

    /// The asking end.
    pub fn client(&self) -> &RequestClient {
        &self.0.client
    }

    /// The answering end.
    pub fn server(&self) -> &ReplyServer {
        &self.0.server
    }

    /// Receipts that this process waits for, of records that it wrote.
    pub fn awaited(&self) -> &AwaitedReceipts {
        &self.0.awaited
    }

    /// Receipts that this process sends to the writers of records.
    pub fn receipts(&self) -> &ReceiptSender {
        &self.0.receipts
    }

    /// Whether a store serves although another store of its name served before.
    pub fn adopts(&self, store: &str) -> bool {
        self.0.options.adopt_stores.iter().any(|name| name == store)
    }

    /// The bus.
    pub fn bus(&self) -> &Arc<dyn Bus> {
        self.0.port.bus()
    }

    /// What holds on the wire.
    pub fn rules(&self) -> &'static WireRules {
        self.bus().rules()
    }

    /// Name of the inbox, which names the process.
    pub fn inbox(&self) -> &str {
        self.0.port.inbox()
    }

    /// Starts a task.
    pub fn spawn<F: Future<Output = ()> + Send + 'static>(&self, kind: TaskKind, future: F) {
        self.0.port.spawn(kind, future);
    }

    /// Cancelled when the process stops and nothing is waited for any more.
    pub fn shutdown(&self) -> &CancellationToken {
        self.0.port.shutdown()
    }

    /// Questions open and answers under way, for gauges and drains.
    pub fn load(&self) -> (usize, usize) {
        (self.0.client.open_count(), self.0.server.open_count())
    }

    /// Asks a question. Nothing is sent before the first part is awaited.
    pub fn ask<Q: Message, R: Reply>(&self, topic: &Topic, question: &Q, ask: Ask) -> Answer<R> {
        let question = self.question(topic, question, (ask, SpanKind::Client));
        let question = question.map(|question| self.0.client.open(question));
        Answer::new(self.0.client.clone(), question)
    }

    /// Asks a question whose answer goes to the asker of another one, under that one's id: who took that on here
    /// passes it to another service and is out of the way. `Ok` once a server's queue has it.
    ///
    /// # Errors
    /// When it cannot be sent, or nobody serves the topic; the asker then still waits for an answer from here.
    pub async fn forward<Q: Message>(
        &self,
        topic: &Topic,
        question: &Q,
        address: &ReplyAddress,
        ask: Ask,
    ) -> Result<(), Error> {
        let ask = Ask {
            id: Some(address.id.clone()),
            deadline: Some(Deadline::from_millis(address.deadline)),
            detach: address.detach,
            ..ask
        };
        let mut question = self.question(topic, question, (ask, SpanKind::Producer))?;
        Arc::make_mut(&mut question.question.headers).reply_to = Some(address.reply_to.clone());
        self.0.client.forward(question).await
    }

    fn question<Q: Message>(
        &self,
        topic: &Topic,
        question: &Q,
        (ask, kind): (Ask, SpanKind),
    ) -> Result<NewQuestion, Error> {
        Self::may_ask(topic, ask.depth)?;
        let body = codec::encode(question, ContentType::Json)?;
        let near = || {
            self.port()
                .near()
                .only(topic)
                .is_some_and(|one| one.is_alone())
        };
        let in_process = self.bus().in_process() || near();
        let handover = Handover::new(in_process, &body, || question.clone());
        Ok(self.written_question(topic, (body, handover), ask, kind))
    }

    /// Writes a record. `Ok` means: durable, and in the queue of every reader that the table names.
    /// Waits (bounded) for a bus that is away.
    ///
    /// # Errors
    /// When it cannot be encoded, no message can hold it, no queue takes it, or the bus stays away.
    pub async fn record<M: Message>(
        &self,
        topic: &Topic,
        record: &M,
        ask: Ask,
    ) -> Result<(), Error> {
        self.write_record(topic, record, None, ask).await
    }

    /// As [`Peer::record`], of one that its writer goes on with: it is not copied for readers in this process.
    ///
    /// # Errors
    /// As [`Peer::record`].
    pub async fn record_shared<M: Message>(
        &self,
        topic: &Topic,
        record: &Arc<M>,
        ask: Ask,
    ) -> Result<(), Error> {
        self.write_record(topic, &**record, Some(record), ask).await
    }

    async fn write_record<M: Message>(
        &self,
        topic: &Topic,
        record: &M,
        shared: Option<&Arc<M>>,
        ask: Ask,
    ) -> Result<(), Error> {
        let rules = self.rules();
        let body = codec::encode(record, rules.records)?;
        let handover = match shared {
            Some(shared) => Handover::shared(self.bus().in_process(), &body, shared),
            None => Handover::new(self.bus().in_process(), &body, || record.clone()),
        };
        let schema = rules.framed.then(codec::fingerprint::<M>);
        self.write_body(topic, (body, handover), schema, ask).await
    }

    /// Writes a record whose message is written; `schema` names what it is written in, where the bus says that.
    async fn write_body(
        &self,
        topic: &Topic,
        (body, handover): (Bytes, Handover),
        schema: Option<String>,
        ask: Ask,
    ) -> Result<(), Error> {
        let base = topic.name().split(':').next().unwrap_or_default();
        let must_be_read = !ask.droppable && processors::must_be_read(base);
        let cancel = ask.cancel.clone();
        let headers = match schema {
            None => Headers::default(),
            schema => Headers {
                schema,
                ..self.record_headers(ask)
            },
        };
        let envelope = Envelope {
            headers: Arc::new(headers),
            content_type: self.rules().records,
            handover,
            body,
        };
        let target = Target::Topic(topic.clone());
        self.publish_record(&target, envelope, must_be_read, &cancel)
            .await
    }

    /// What the headers of a record say of where it comes from.
    pub(crate) fn record_headers(&self, ask: Ask) -> Headers {
        Headers {
            id: ask.id.or(ask.parent.map(|parent| parent.to_string())),
            from: Some(self.inbox().to_owned()),
            workspace: ask.workspace.map(Into::into),
            generation: ask.generation,
            collection: ask.collection,
            collection_generation: ask.collection_generation,
            receipt: ask.receipt,
            epoch: ask.epoch,
            thread: ask.thread,
            depth: (ask.depth > 0).then_some(ask.depth.min(FAR)),
            user_id: ask.user_id,
            credential: ask.credential,
            user_context: ask.user_context,
            roles: ask.roles,
            policies: ask.policies,
            by_hand: ask.by_hand,
            traceparent: ask.traceparent,
            request_id: ask.request_id,
            ..Headers::default()
        }
    }

    /// Writes a record as it is. With `must_be_read` a record that no queue takes is an error.
    ///
    /// # Errors
    /// As [`Peer::record`].
    pub async fn publish_record(
        &self,
        target: &Target,
        envelope: Envelope,
        must_be_read: bool,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let mut unread = 0;
        loop {
            match self.publish_once(target, &envelope, cancel).await? {
                Routed::Queued => return Ok(()),
                Routed::Unroutable if !must_be_read => return Ok(()),
                Routed::Unroutable => {
                    unread += 1;
                    if unread > UNREAD {
                        return Err(nobody_reads());
                    }
                    tokio::time::sleep(UNREAD_PAUSE).await;
                }
            }
        }
    }

    /// Publishes a record as soon as the bus is there, within the patience for it.
    pub(crate) async fn publish_once(
        &self,
        target: &Target,
        envelope: &Envelope,
        cancel: &CancellationToken,
    ) -> Result<Routed, Error> {
        let now = Instant::now();
        let until = now + self.0.options.record_patience;
        // What is new is told at once, and comes again or not.
        let leads_on = envelope.headers.depth.is_some();
        let room_until = now + ROOM_PATIENCE;
        let mut link = self.bus().link();
        loop {
            let publish = self
                .port()
                .publish(target, envelope.clone(), PublishMode::Confirmed);
            match publish.await {
                Ok(routed) => return Ok(routed),
                Err(BusError::Down) if Instant::now() < until => {
                    tokio::select! {
                        _ = link.wait_for(|link| !matches!(link, Link::Down)) => {}
                        () = tokio::time::sleep_until(until) => {}
                        () = cancel.cancelled() => return Err(BusError::Down.into()),
                    }
                    tokio::time::sleep(ONCE_UP).await;
                }
                Err(BusError::WorkspaceFull) if leads_on && Instant::now() < room_until => {
                    tokio::select! {
                        () = tokio::time::sleep(ROOM_PAUSE) => {}
                        () = cancel.cancelled() => return Err(BusError::WorkspaceFull.into()),
                    }
                }
                Err(fault) => return Err(fault.into()),
            }
        }
    }

    /// Sends a hint to everybody who listens.
    ///
    /// # Errors
    /// When the hint cannot be encoded or the bus does not take it.
    pub async fn notify<M: Message>(&self, topic: &Topic, hint: &M) -> Result<(), Error> {
        let body = codec::encode(hint, ContentType::Json)?;
        let framed = self.rules().framed;
        let envelope = Envelope {
            headers: Arc::new(Headers {
                from: framed.then(|| self.inbox().to_owned()),
                ..Headers::default()
            }),
            body,
            ..Envelope::default()
        };
        self.bus()
            .publish(
                &Target::Topic(topic.clone()),
                envelope,
                PublishMode::Confirmed,
            )
            .await?;
        Ok(())
    }

    /// Goes on with an answer that was released. `None` while this process still works on it. Once its last part is sent, the bus
    /// has all parts: the handler can note that the answer is over, and nobody needs to go on with it.
    pub fn resume<R: Reply>(&self, address: ReplyAddress) -> Option<Responder<R>> {
        let stream = self.0.server.resume(&address)?;
        Some(Responder::new(self.0.server.clone(), stream))
    }

    /// Asks the asker of an answer that another process began, and that is to be resumed here, where it
    /// stands. From then on it listens to this process only. `None` if it says nothing for this long.
    pub async fn standing(&self, address: &ReplyAddress, patience: Duration) -> Option<AskerState> {
        if address.plain {
            return None;
        }
        self.0.server.standing(address, patience).await
    }

    /// Ends the peer's tasks and lets go of what the bus delivers to.
    pub async fn leave(&self) {
        self.0.client.close().await;
    }
}

/// Takes frames addressed to this process, as asker, as answerer and as writer of records.
struct Inbox {
    client: RequestClient,
    server: ReplyServer,
    awaited: AwaitedReceipts,
}

impl Sink for Inbox {
    fn deliver(&self, mut delivery: Delivery) {
        let envelope = std::mem::take(&mut delivery.envelope);
        match envelope.headers.frame {
            Some(Frame::Resend | Frame::Credit | Frame::Cancel) => {
                self.server.deliver(&envelope.headers);
            }
            Some(Frame::Receipts) => self.awaited.deliver(&envelope),
            _ => self.client.deliver(envelope),
        }
        delivery.ack();
    }
}
