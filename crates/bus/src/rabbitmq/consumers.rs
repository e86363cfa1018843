//! Consumers that outlive a connection: a registry of what is consumed, set up again in each session.
//!
//! Deliveries are handed to sinks on the connection's own thread, in order, without a task each.

use std::collections::HashMap;
use std::future::ready;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use lapin::message::DeliveryResult;
use lapin::options::{BasicCancelOptions, BasicConsumeOptions};
use lapin::types::ShortString;
use lapin::{Channel, ConsumerDelegate};
use parking_lot::{Mutex, RwLock};
use tg_schemas::topic::Class;
use tg_schemas::{Subscription, Topic};
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio::time::timeout;

use super::arguments;
use super::deferred::Deferred;
use super::held::Held;
use super::options::RabbitOptions;
use super::session::Session;
use super::settle::Ticket;
use super::topology;
use super::wire::{self, AmqpError};
use crate::bus::{Consume, Delete, Delivery, Settle, Sink};
use crate::in_hand::InHand;
use crate::mode::WireRules;
use crate::tap::Tap;
use crate::task::{Starter, TaskKind};

/// Longest wait for the broker when a consumer stops.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How often a queue that vanishes between declaring and consuming is declared again.
const TRIES: usize = 3;

/// What is consumed.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// A subscription, and how it is consumed.
    Subscription(Subscription, Consume),
    /// A topic of records, without keeping any.
    Observer(Topic),
    /// This process's inbox.
    Inbox(String),
}

impl Source {
    fn prefetch(&self) -> Option<u16> {
        match self {
            Self::Subscription(of, how) if of.topic.class() == Class::Flow => {
                Some(how.prefetch.max(1))
            }
            _ => None,
        }
    }

    /// The claim under which it is consumed.
    pub(super) fn claim(&self) -> Option<&str> {
        match self {
            Self::Subscription(_, how) => how.claim.as_deref(),
            _ => None,
        }
    }
}

/// All consumers of this process.
pub(super) struct Registry {
    rules: &'static WireRules,
    inbox_exchange: bool,
    starter: Starter,
    entries: Mutex<HashMap<u64, Arc<Entry>>>,
    /// The inboxes of this process by name, with the numbers of their consumers.
    inboxes: RwLock<HashMap<String, (u64, Arc<Tap>)>>,
    next: AtomicU64,
    lost: Arc<Lost>,
    in_hand: Arc<InHand>,
}

/// One consumer.
pub(super) struct Entry {
    ear: Arc<Ear>,
    /// Held while it is set up or stopped.
    live: AsyncMutex<Option<Live>>,
}

impl Deref for Entry {
    type Target = Ear;

    fn deref(&self) -> &Ear {
        &self.ear
    }
}

/// What of a consumer the client library holds as well. It must not own the library's consumer: the library
/// drops it under that consumer's lock, which the consumer's own end would wait for.
pub(super) struct Ear {
    /// Its number.
    pub(super) id: u64,
    /// What it consumes.
    pub(super) source: Source,
    sink: Arc<dyn Sink>,
    stopped: AtomicBool,
    deferred: Arc<Deferred>,
    held: Arc<Held>,
}

impl Ear {
    /// Whether it was stopped.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    fn deliver(&self, starter: &Starter, generation: u64, delivery: lapin::message::Delivery) {
        let delivery = match self.source.prefetch() {
            None => to_delivery(delivery, None),
            Some(_) if self.held.comes_back(generation, &delivery) => return,
            Some(_) => match self.deferred.admit(starter, delivery) {
                Some((delivery, hand)) => {
                    let ticket = self.held.hold(generation, &delivery, hand);
                    to_delivery(delivery, Some(ticket))
                }
                None => return,
            },
        };
        let _context = starter.enter();
        // A faulty sink must not take the connection with it.
        if catch_unwind(AssertUnwindSafe(|| self.sink.deliver(delivery))).is_err() {
            tracing::error!("a consumer panicked while it handled a message");
        }
    }
}

struct Live {
    generation: u64,
    channel: Channel,
    // Dropping it would cancel the consumer.
    consumer: lapin::Consumer,
}

/// Consumers that the broker cancelled.
#[derive(Default)]
struct Lost {
    /// Generation of the session that lost it, and the consumer.
    ids: Mutex<Vec<(u64, u64)>>,
    some: Notify,
}

impl Lost {
    fn push(&self, generation: u64, id: u64) {
        self.ids.lock().push((generation, id));
        self.some.notify_one();
    }
}

impl Registry {
    /// No consumers yet. Sinks run in the context of this runtime.
    /// They hold so many bytes of records at once.
    pub(super) fn new(
        rules: &'static WireRules,
        starter: Starter,
        options: &RabbitOptions,
    ) -> Self {
        let in_hand = options.in_hand;
        Self {
            rules,
            inbox_exchange: options.inbox_exchange,
            starter,
            entries: Mutex::default(),
            inboxes: RwLock::default(),
            next: AtomicU64::new(0),
            lost: Arc::default(),
            in_hand: InHand::new(in_hand),
        }
    }

    /// Starts a consumer and remembers it.
    pub(super) async fn add(
        &self,
        session: &Session,
        source: Source,
        sink: Arc<dyn Sink>,
    ) -> Result<Arc<Entry>, AmqpError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let entry = Arc::new(Entry {
            ear: Arc::new(Ear {
                id,
                source,
                sink,
                stopped: AtomicBool::new(false),
                deferred: Deferred::new(self.in_hand.clone(), id),
                held: Arc::default(),
            }),
            live: AsyncMutex::default(),
        });
        // Known before it is set up: a reconnect in between sets it up, too.
        self.entries.lock().insert(entry.id, entry.clone());
        match self.set_up(session, &entry).await {
            Ok(()) => {
                if let Source::Inbox(name) = &entry.source {
                    let tap = Tap::new(entry.sink.clone());
                    let mut inboxes = self.inboxes.write();
                    // All consumers may have ended meanwhile.
                    if !entry.is_stopped() {
                        inboxes.insert(name.clone(), (id, tap));
                    }
                }
                Ok(entry)
            }
            Err(fault) => {
                // A reconnect may have set it up meanwhile.
                self.stop(None, &entry).await;
                Err(fault)
            }
        }
    }

    /// All consumers.
    pub(super) fn all(&self) -> Vec<Arc<Entry>> {
        self.entries.lock().values().cloned().collect()
    }

    /// The inbox of this name, if it is one of this process.
    pub(super) fn inbox(&self, name: &str) -> Option<Arc<Tap>> {
        let inboxes = self.inboxes.read();
        inboxes.get(name).map(|(_, tap)| tap.clone())
    }

    /// Forgets the inbox that a consumer reads.
    fn forget_inbox(&self, entry: &Entry) -> Option<Arc<Tap>> {
        let Source::Inbox(name) = &entry.source else {
            return None;
        };
        let mut inboxes = self.inboxes.write();
        match inboxes.get(name) {
            Some((id, _)) if *id == entry.id => inboxes.remove(name).map(|(_, tap)| tap),
            _ => None,
        }
    }

    /// Declares and consumes.
    pub(super) async fn set_up(
        &self,
        session: &Session,
        entry: &Arc<Entry>,
    ) -> Result<(), AmqpError> {
        let mut live = entry.live.lock().await;
        *live = None;
        for _ in 0..TRIES {
            if entry.stopped.load(Ordering::Acquire) {
                return Ok(());
            }
            match self.try_set_up(session, entry).await {
                Ok(done) => {
                    *live = Some(done);
                    return Ok(());
                }
                // The last other consumer of an auto-deleted queue left just now.
                Err(AmqpError::Missing) => {}
                Err(fault) => return Err(fault),
            }
        }
        Err(AmqpError::Missing)
    }

    async fn try_set_up(&self, session: &Session, entry: &Arc<Entry>) -> Result<Live, AmqpError> {
        let queue = match &entry.source {
            Source::Subscription(of, _) => {
                topology::declare_for_consumer(session, self.rules, of).await?
            }
            Source::Observer(topic) => {
                topology::declare_observer(session, self.rules, topic).await?
            }
            Source::Inbox(name) => self.declare_inbox(session, entry.id, name).await?,
        };
        let prefetch = entry.source.prefetch();
        let tag = format!("ctag{}.{}", entry.id, uuid::Uuid::new_v4().simple());
        let delegate = Delegate {
            generation: session.generation,
            ear: Some(entry.ear.clone()),
            lost: self.lost.clone(),
            starter: self.starter.clone(),
        };
        let (channel, consumer) = session
            .consuming_channel(prefetch, entry.id, async |channel| {
                let options = BasicConsumeOptions {
                    no_ack: prefetch.is_none(),
                    ..BasicConsumeOptions::default()
                };
                let consumer = channel
                    .basic_consume(queue, tag.into(), options, arguments::none())
                    .await?;
                consumer.set_delegate(delegate);
                Ok(consumer)
            })
            .await?;
        Ok(Live {
            generation: session.generation,
            channel,
            consumer,
        })
    }

    async fn declare_inbox(
        &self,
        session: &Session,
        id: u64,
        name: &str,
    ) -> Result<ShortString, AmqpError> {
        let queue = topology::declare_inbox(session, name).await?;
        if self.rules.deaths_show {
            match topology::declare_liveness(session, name).await {
                // The broker has not noticed yet that the connection before is gone.
                Err(AmqpError::Locked) => self.lost.push(session.generation, id),
                Ok(()) if self.inbox_exchange => {
                    let alive = topology::liveness(name);
                    topology::bind_inbox(session, &alive).await?;
                }
                declared => declared?,
            }
        }
        if self.inbox_exchange {
            topology::bind_inbox(session, name).await?;
        }
        Ok(queue)
    }

    /// Stops a consumer: nothing is delivered once this returns, and all that the broker sent before is.
    pub(super) async fn stop(&self, session: Option<&Session>, entry: &Entry) {
        entry.stopped.store(true, Ordering::Release);
        self.entries.lock().remove(&entry.id);
        let own = self.forget_inbox(entry);
        if let Some(own) = own {
            own.shut().await;
        }
        let live = entry.live.lock().await.take();
        if let Some(mut live) = live {
            let tag = live.consumer.tag();
            let cancel = live
                .channel
                .basic_cancel(tag, BasicCancelOptions::default());
            let _ = timeout(TIMEOUT, cancel).await;
            // The library stops calling the delegate when the cancel goes out. What came until the broker heard of it
            // stays with the consumer, where nobody would settle it.
            while let Some(Some(Ok(delivery))) = live.consumer.next().now_or_never() {
                entry.deliver(&self.starter, live.generation, delivery);
            }
            entry.deferred.release();
        }
        if let (Source::Inbox(name), Some(session)) = (&entry.source, session) {
            let _ = topology::delete_queue(session, name, Delete::Always).await;
            let alive = topology::liveness(name);
            let _ = topology::delete_queue(session, &alive, Delete::Always).await;
        }
    }

    /// Forgets all consumers; their connection is going away.
    pub(super) fn clear(&self) {
        for (_, entry) in self.entries.lock().drain() {
            entry.stopped.store(true, Ordering::Release);
        }
        for (_, (_, own)) in self.inboxes.write().drain() {
            own.close();
        }
    }

    /// Waits for consumers that the broker cancelled in this session. What an earlier one lost was set
    /// up again with it.
    pub(super) async fn lost(&self, session: &Session) -> Vec<Arc<Entry>> {
        loop {
            let lost = std::mem::take(&mut *self.lost.ids.lock());
            let entries: Vec<_> = lost
                .iter()
                .filter(|(generation, _)| *generation == session.generation)
                .filter_map(|(_, id)| self.entries.lock().get(id).cloned())
                .collect();
            if !entries.is_empty() {
                return entries;
            }
            self.lost.some.notified().await;
        }
    }

    /// Tries again later.
    pub(super) fn retry(&self, session: &Session, entry: &Entry) {
        self.lost.push(session.generation, entry.id);
    }

    /// Gives up on a consumer whose queue was deleted.
    pub(super) fn give_up(&self, entry: &Entry) {
        entry.stopped.store(true, Ordering::Release);
        self.entries.lock().remove(&entry.id);
    }
}

/// Takes deliveries from the client library.
struct Delegate {
    generation: u64,
    /// There until it is dropped.
    ear: Option<Arc<Ear>>,
    lost: Arc<Lost>,
    starter: Starter,
}

impl ConsumerDelegate for Delegate {
    fn on_new_delivery(&self, result: DeliveryResult) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        match (result, &self.ear) {
            (Ok(Some(delivery)), Some(ear)) => {
                ear.deliver(&self.starter, self.generation, delivery);
            }
            (Ok(None), Some(ear)) if !ear.stopped.load(Ordering::Acquire) => {
                self.lost.push(self.generation, ear.id);
            }
            // An error is always followed by `None`.
            (Ok(_) | Err(_), _) => {}
        }
        Box::pin(ready(()))
    }
}

impl Drop for Delegate {
    fn drop(&mut self) {
        // The library holds locks here, and whatever ends with a sink may come back to it.
        let ear = self.ear.take();
        self.starter
            .spawn(TaskKind::Connection, async move { drop(ear) });
    }
}

/// A delivery as the bus hands it out. What needs no settling was settled when it was taken.
pub(super) fn to_delivery(
    delivery: lapin::message::Delivery,
    settle: Option<Box<dyn Settle>>,
) -> Delivery {
    Delivery {
        envelope: wire::envelope(&delivery.properties, delivery.data),
        redelivered: delivery.redelivered,
        settle,
    }
}

/// A delivery that was asked for by itself.
pub(super) fn to_single(delivery: lapin::message::Delivery) -> Delivery {
    let ticket = Ticket(delivery.acker.clone());
    to_delivery(delivery, Some(Box::new(ticket)))
}
