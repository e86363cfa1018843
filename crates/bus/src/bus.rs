//! What a bus can do. Two adapters implement it, one conformance suite holds them to it.
//!
//! A bus knows topics, subscriptions and inboxes; it knows nothing of answers, deadlines, flows or retries.

use crate::mode::WireRules;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use bytes::Bytes;
use tg_schemas::codec::{self, CodecError, ContentType};
use tg_schemas::{Error, ErrorCode, Headers, Message, Subscription, Topic, limits, sections};
use tokio::sync::watch;

use crate::handover::Handover;

/// Largest body of one message, in bytes, unless a bus is set up otherwise.
pub const MAX_BODY: usize = limits::MESSAGE;

/// A message as a bus carries it.
#[derive(Debug, Clone)]
pub struct Envelope {
    /// Headers, which its copies share.
    pub headers: Arc<Headers>,
    /// How the body is written.
    pub content_type: ContentType,
    /// The body; empty where the handover stands for it.
    pub body: Bytes,
    /// The message itself, on a bus that is inside the process.
    pub handover: Handover,
}

/// Of an envelope that has none: an empty one allocates nothing.
static NO_HEADERS: LazyLock<Arc<Headers>> = LazyLock::new(Arc::default);

impl Default for Envelope {
    fn default() -> Self {
        Self {
            headers: NO_HEADERS.clone(),
            content_type: ContentType::default(),
            body: Bytes::new(),
            handover: Handover::default(),
        }
    }
}

impl Envelope {
    /// The message: the one handed over if nobody took it yet, else what the body says.
    ///
    /// # Errors
    /// [`CodecError`] where the body is not a message of this type.
    pub fn read<M: Message>(&self) -> Result<M, CodecError> {
        if self.headers.sections.is_some() {
            if let Some(message) = self.handover.take_section() {
                return Ok(message);
            }
            let section = self.body_of::<M>();
            let section = section.ok_or(CodecError::NoSection { name: M::NAME })?;
            return codec::decode(section, self.content_type);
        }
        match self.handover.take_message() {
            Some(read) => read,
            None => M::beside(&self.headers, &self.body)
                .unwrap_or_else(|| codec::decode(&self.body, self.content_type)),
        }
    }

    /// Bytes of the body; of one that was not written, at most.
    pub fn size(&self) -> usize {
        self.body.len() + self.handover.size()
    }

    /// What is found in the message at hand, which stays there for its reader. `None`: none of this type is at hand.
    pub fn at_hand<M: Message, T>(&self, find: impl FnOnce(&M) -> T) -> Option<T> {
        self.handover.look(find)
    }

    /// The bytes that a message of a type is read from. `None` where a body of several messages has none of it.
    pub fn body_of<M: Message>(&self) -> Option<&[u8]> {
        match &self.headers.sections {
            Some(sections) => sections::of::<M>(sections, &self.body),
            None => Some(&self.body[..]),
        }
    }
}

/// Where a message goes.
#[derive(Debug, Clone)]
pub enum Target {
    /// To every subscription of a topic.
    Topic(Topic),
    /// To one subscription only (due retries, replays).
    Subscription(Subscription),
    /// To the inbox of one process.
    Inbox(Arc<str>),
    /// To nobody: published with [`PublishMode::Confirmed`] it tells whether the process of this inbox is connected
    /// ([`Routed::Queued`]) or gone ([`Routed::Unroutable`]).
    Liveness(Arc<str>),
}

/// What a publisher receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Routed {
    /// At least one queue has it (for records: safely).
    Queued,
    /// No queue wanted it.
    Unroutable,
}

/// How long `publish` waits. Messages with different promises may overtake each other, but for those that say otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishMode {
    /// Until the bus has confirmed it, and said whether it was routed.
    Confirmed,
    /// Not at all: a lost message is noticed by its gap in `seq`.
    FireAndForget,
    /// Until the bus has it and all that was published as [`Self::FireAndForget`] before it, which it does not overtake: they
    /// arrive even if this process dies now, unless the bus closed the way there meanwhile. Whether it was routed is not reported.
    Flushed,
}

/// Takes deliveries. Called from the bus's own task: must not block or wait.
pub trait Sink: Send + Sync + 'static {
    /// Takes one delivery.
    fn deliver(&self, delivery: Delivery);
}

/// Settles a delivery.
pub trait Settle: Send {
    /// The effect is stored: the bus may forget the message.
    fn ack(self: Box<Self>);
    /// Not handled here: the bus gives it to another consumer, or to this one again (`redelivered`).
    fn give_back(self: Box<Self>);
}

/// A message handed to a consumer. A record that is dropped without [`Delivery::ack`] is given back.
pub struct Delivery {
    /// The message.
    pub envelope: Envelope,
    /// The bus has handed it out before.
    pub redelivered: bool,
    /// `None` for questions, answers and notices: taking one settles it.
    pub settle: Option<Box<dyn Settle>>,
}

impl Delivery {
    /// Settles the delivery for good.
    pub fn ack(mut self) {
        if let Some(settle) = self.settle.take() {
            settle.ack();
        }
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if let Some(settle) = self.settle.take() {
            settle.give_back();
        }
    }
}

/// How to consume.
#[derive(Debug, Clone)]
pub struct Consume {
    /// Most deliveries handed out and not settled (records only; questions are taken at once).
    pub prefetch: u16,
    /// Name of the claim under which this process consumes: after an outage deliveries begin again only once the
    /// claim is won again, so that a process that lost its store takes nothing into it.
    pub claim: Option<Arc<str>>,
}

impl Consume {
    /// Consumes whatever this process has claimed.
    pub fn prefetch(prefetch: u16) -> Self {
        Self {
            prefetch,
            claim: None,
        }
    }
}

/// A running consumer.
#[async_trait]
pub trait Consumer: Send + Sync {
    /// Stops deliveries. Those handed out can still be settled. A request queue vanishes with its last
    /// consumer (native), a record queue stays.
    async fn stop(&self);
}

/// What is in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueState {
    /// Messages ready for a consumer.
    pub ready: u64,
    /// Consumers attached.
    pub consumers: u32,
}

/// On which condition a queue is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delete {
    /// With whatever is in it.
    Always,
    /// Only if nothing waits in it: nothing that a publisher was told is queued is lost. A queue that stays
    /// may be off its topic, so that emptying it again comes to an end; declaring or consuming puts it back.
    IfEmpty,
}

/// What became of a queue that was to be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// There was none.
    Missing,
    /// Something waits in it; it stays.
    NotEmpty,
    /// It is gone, with this many messages that waited.
    Gone {
        /// Messages thrown away.
        messages: u64,
    },
}

/// The connection's state. `generation` grows with each (re)connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Connected; all declarations and consumers of this process are in place again.
    Up {
        /// Counts connects, from 1.
        generation: u64,
    },
    /// Not connected; the adapter keeps trying.
    Down,
    /// Connected, but the broker takes no messages for now (resource alarm).
    Blocked,
}

/// A sole-owner claim; released when dropped or when the process dies.
pub trait Claim: Send + Sync {
    /// Whether the claim still stands (a reconnect can lose it to another process).
    fn holds(&self) -> bool;
}

/// Why a bus operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// Not connected (any more); nothing is known about the message. Publishing again may double it.
    #[error("the message bus is not reachable")]
    Down,
    /// The body is larger than the bus carries.
    #[error("the message is larger than {limit} bytes")]
    TooLarge {
        /// Largest body in bytes.
        limit: usize,
    },
    /// The headers are larger than the bus carries.
    #[error("the headers of the message are larger than {limit} bytes")]
    HeadersTooLarge {
        /// Largest headers in bytes.
        limit: usize,
    },
    /// The store under the embedded bus failed, e.g. its disk is full.
    #[error("records cannot be stored at the moment; the disk may be full")]
    Store,
    /// So much of one workspace waits that it has no room for more until some of it is handled.
    #[error("too many records of this workspace wait to be handled; try again when some are done")]
    WorkspaceFull,
    /// The bus refused a declaration: another program uses the name with other properties.
    #[error("the message bus refused a declaration")]
    Refused,
    /// The bus was closed by this process.
    #[error("the message bus is closed")]
    Closed,
}

/// Refuses a message that a bus of this largest body does not carry. A broker would close the connection for it.
///
/// # Errors
/// [`BusError::TooLarge`] or [`BusError::HeadersTooLarge`].
pub fn check_size(envelope: &Envelope, limit: usize) -> Result<(), BusError> {
    if envelope.body.len() > limit {
        return Err(BusError::TooLarge { limit });
    }
    let limit = limits::HEADERS;
    match envelope.headers.size() > limit {
        true => Err(BusError::HeadersTooLarge { limit }),
        false => Ok(()),
    }
}

impl From<BusError> for Error {
    fn from(fault: BusError) -> Self {
        let code = match fault {
            BusError::Down | BusError::Closed => ErrorCode::Unavailable,
            BusError::TooLarge { .. } | BusError::HeadersTooLarge { .. } => ErrorCode::TooLarge,
            BusError::Store => ErrorCode::Storage,
            BusError::WorkspaceFull => ErrorCode::Busy,
            BusError::Refused => ErrorCode::Internal,
        };
        Error::new(code, fault.to_string())
    }
}

/// A message bus. Every method may be called concurrently; `Down` is returned at once while not connected.
///
/// Queues by class: `flow` durable, records persistent, acknowledged; `request` with transient messages, taken without
/// acknowledgement, auto-deleted with the last consumer where questions come back; `response` and `notify` a private
/// queue per consumer; an inbox one named queue per process that survives a reconnect.
#[async_trait]
pub trait Bus: Send + Sync + 'static {
    /// What holds on its wire.
    fn rules(&self) -> &'static WireRules;

    /// Where it is, for the log: without user, password and query, which may hold keys.
    fn address(&self) -> String {
        "inside this process".to_owned()
    }

    /// Declares topics, and the durable queues of `flow` subscriptions, in one go. Idempotent.
    ///
    /// # Errors
    /// [`BusError::Refused`] where another program uses a name with other properties, or a name is too long. After
    /// [`BusError::Down`] some of them may be there; declaring them again is safe.
    async fn declare(&self, topics: &[Topic], queues: &[Subscription]) -> Result<(), BusError>;

    /// What is published on a topic of records goes on to the readers of others, too, in one go: each queue gets it
    /// once. Idempotent; made anew by who publishes there, for it lasts no longer than the topic, and on a bus inside
    /// the process no longer than that.
    ///
    /// # Errors
    /// [`BusError::Refused`] where one of the topics does not exist.
    async fn relay(&self, _from: &Topic, _to: &[Topic]) -> Result<(), BusError> {
        Err(BusError::Refused)
    }

    /// Publishes. Records with [`PublishMode::Confirmed`] are durable once `Queued` is returned.
    ///
    /// # Errors
    /// [`BusError::TooLarge`] will be one at each try. After [`BusError::Down`] nothing is known of the message, and publishing
    /// it again may double it; after [`BusError::Store`] and
    /// [`BusError::WorkspaceFull`] it was not kept.
    async fn publish(
        &self,
        target: &Target,
        envelope: Envelope,
        promise: PublishMode,
    ) -> Result<Routed, BusError>;

    /// Starts consuming; declares what is missing. Re-established by itself after a reconnect.
    ///
    /// # Errors
    /// Nothing is consumed. [`BusError::Refused`] where another program uses a name with other properties; else it may work
    /// later.
    async fn consume(
        &self,
        subscription: &Subscription,
        how: Consume,
        sink: Arc<dyn Sink>,
    ) -> Result<Box<dyn Consumer>, BusError>;

    /// Looks on at a topic of records from now on: each published record is handed out once, needs no settling
    /// and waits nowhere. An observer is no reader: a record that only observers get went [`Routed::Unroutable`]
    /// where the bus can tell. What passes while the connection is away is missed.
    ///
    /// # Errors
    /// Nothing is handed out. As for [`Bus::consume`].
    async fn observe(
        &self,
        _topic: &Topic,
        _sink: Arc<dyn Sink>,
    ) -> Result<Box<dyn Consumer>, BusError> {
        Err(BusError::Refused)
    }

    /// Opens this process's inbox under a name of its own choice.
    ///
    /// # Errors
    /// No answer can reach this process. As for [`Bus::consume`].
    async fn open_inbox(
        &self,
        name: &str,
        sink: Arc<dyn Sink>,
    ) -> Result<Box<dyn Consumer>, BusError>;

    /// Looks at a queue; `None` if it does not exist.
    ///
    /// # Errors
    /// Nothing is known of the queue: the bus is away or closed.
    async fn queue_state(&self, of: &Subscription) -> Result<Option<QueueState>, BusError>;

    /// Takes one message from a queue without consuming it for good: settle the delivery.
    ///
    /// # Errors
    /// The bus is away or closed. A message that was on its way stays in the queue.
    async fn take(&self, from: &Subscription) -> Result<Option<Delivery>, BusError>;

    /// Deletes a queue.
    ///
    /// # Errors
    /// The bus is away or closed. The queue may be gone or not; deleting it again is safe.
    async fn delete_queue(&self, of: &Subscription, when: Delete) -> Result<Deleted, BusError>;

    /// Deletes a topic if no queue is bound to it any more. `false` if there was none or it is in use.
    ///
    /// # Errors
    /// The bus is away or closed. The topic may be gone or not; deleting it again is safe.
    async fn delete_topic(&self, topic: &Topic) -> Result<bool, BusError>;

    /// Deletes a topic that has no queue of its own and only passes records on ([`Bus::relay`]). `false` if there was
    /// none.
    ///
    /// # Errors
    /// As for [`Bus::delete_topic`].
    async fn delete_relay(&self, topic: &Topic) -> Result<bool, BusError> {
        self.delete_topic(topic).await
    }

    /// Claims a name for this process alone. `None` while another process holds it.
    ///
    /// # Errors
    /// The bus is away or closed, so that nobody can tell who holds the name; this process does not.
    async fn claim(&self, name: &str) -> Result<Option<Box<dyn Claim>>, BusError>;

    /// Largest body, in bytes, that one message can carry.
    fn max_body(&self) -> usize {
        MAX_BODY
    }

    /// Whether everybody on this bus is in this process: while it lives no message is lost on its way (nothing is
    /// kept for repeats), and a message can be handed over as it is.
    fn in_process(&self) -> bool {
        false
    }

    /// Follows the connection.
    fn link(&self) -> watch::Receiver<Link>;

    /// Closes the bus: stops consumers, flushes, disconnects.
    async fn close(&self);
}
