//! The bus inside one process: no broker, no network.
//!
//! A publish hands its message to every sink before it returns. Records are on disk before that (unless
//! the bus was opened in memory), so they survive `kill -9`; questions, answers and notices live in
//! memory only. A slow consumer of records delays nobody: beyond its prefetch they wait in its queue,
//! and beyond a budget of memory on disk only. Other processes cannot reach this bus.

pub mod faults;
mod frame;
mod live;
mod log;
mod queue;
mod record;
mod store;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use parking_lot::{Mutex, RwLock};
use tg_schemas::topic::Class;
use tg_schemas::{Subscription, Topic};
use tg_storage::{Durability, StorageError};
use tokio::sync::watch;

use self::frame::Entry;
use self::live::{Group, Tap};
use self::queue::Queue;
use self::record::Record;
use self::store::{Store, queue_entry};
use crate::bus::{
    Bus, BusError, Claim, Consume, Consumer, Delivery, Envelope, Link, Mode, Promise, QueueState,
    Routed, Sink, Target,
};

/// How an embedded bus behaves.
#[derive(Debug, Clone, Copy)]
pub struct EmbeddedOptions {
    /// Native, or interop (questions wait for a server instead of coming back).
    pub mode: Mode,
    /// How hard a confirmed record is.
    pub durability: Durability,
    /// Largest body in bytes.
    pub max_body: usize,
    /// Bytes of waiting records held in memory; more wait on disk, or are refused without one.
    pub memory: usize,
    /// Bytes on disk beyond which records are refused.
    pub disk: u64,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        Self {
            mode: Mode::Native,
            durability: Durability::Process,
            max_body: 16 << 20,
            memory: 128 << 20,
            disk: 16 << 30,
        }
    }
}

/// The embedded bus. Clones share it.
#[derive(Clone)]
pub struct EmbeddedBus {
    core: Arc<Core>,
}

struct Core {
    options: EmbeddedOptions,
    store: Arc<Store>,
    topics: RwLock<HashMap<Topic, TopicState>>,
    inboxes: RwLock<HashMap<Arc<str>, Arc<Tap>>>,
    claims: Mutex<HashSet<String>>,
    taps: Mutex<Vec<std::sync::Weak<Tap>>>,
    link: watch::Sender<Link>,
    closed: AtomicBool,
}

/// Who gets what is published on a topic.
#[derive(Default)]
struct TopicState {
    /// Copied on change, so that publishing holds no lock while sinks run.
    readers: Arc<Vec<Reader>>,
}

#[derive(Clone)]
struct Reader {
    name: Arc<str>,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Queue(Arc<Queue>),
    Group(Arc<Group>),
    Private(Arc<Tap>),
}

impl EmbeddedBus {
    /// A bus whose records die with the process.
    pub fn in_memory() -> Self {
        Self::in_memory_with(EmbeddedOptions::default())
    }

    /// The same with options.
    pub fn in_memory_with(options: EmbeddedOptions) -> Self {
        Self::new(options, Store::in_memory(options.memory))
    }

    /// Opens a bus whose records are kept in a directory. Blocks: call it at start-up. A second process
    /// that tries gets [`StorageError::InUse`].
    pub fn open(dir: &Path, durability: Durability) -> Result<Self, StorageError> {
        let options = EmbeddedOptions {
            durability,
            ..EmbeddedOptions::default()
        };
        Self::open_with(dir, options)
    }

    /// The same with options.
    pub fn open_with(dir: &Path, options: EmbeddedOptions) -> Result<Self, StorageError> {
        let (store, found) = Store::open(dir, options.durability, options.memory, options.disk)?;
        let bus = Self::new(options, store);
        let mut topics = bus.core.topics.write();
        for topic in found.catalogue.topics {
            if let Ok(topic) = Topic::parse(&topic) {
                topics.entry(topic).or_default();
            }
        }
        let mut queues = HashMap::new();
        for (id, (topic, name)) in found.catalogue.queues {
            if let Ok(topic) = Topic::parse(&topic) {
                let queue = Queue::new(id, bus.core.store.clone());
                topics
                    .entry(topic)
                    .or_default()
                    .add(&name, Kind::Queue(queue.clone()));
                queues.insert(id, queue);
            }
        }
        drop(topics);
        for record in found.records.into_values() {
            let waiting = record.state.lock().waiting.clone();
            for queue in waiting.iter().filter_map(|id| queues.get(id)) {
                // Whether it was handed out before is not on disk: it may have been.
                queue.push(record.clone(), true);
            }
        }
        Ok(bus)
    }

    /// Bytes of records in memory, and of the log on disk.
    pub fn usage(&self) -> (usize, u64) {
        (self.core.store.in_use(), self.core.store.on_disk())
    }

    fn new(options: EmbeddedOptions, store: Store) -> Self {
        Self {
            core: Arc::new(Core {
                options,
                store: Arc::new(store),
                topics: RwLock::default(),
                inboxes: RwLock::default(),
                claims: Mutex::default(),
                taps: Mutex::default(),
                link: watch::Sender::new(Link::Up { generation: 1 }),
                closed: AtomicBool::new(false),
            }),
        }
    }
}

impl Core {
    fn ready(&self) -> Result<(), BusError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(BusError::Closed);
        }
        Ok(())
    }

    fn readers(&self, topic: &Topic) -> Option<Arc<Vec<Reader>>> {
        Some(self.topics.read().get(topic)?.readers.clone())
    }

    fn reader(&self, of: &Subscription) -> Option<Kind> {
        Some(self.topics.read().get(&of.topic)?.find(&of.name)?.clone())
    }

    /// Makes sure topics and record queues exist; returns a ticket of the store.
    fn declare(&self, topics: &[Topic], queues: &[Subscription]) -> Result<u64, BusError> {
        let mut known = self.topics.write();
        let mut entries = Vec::new();
        let mut new_queues = Vec::new();
        for topic in topics.iter().chain(queues.iter().map(|queue| &queue.topic)) {
            if !known.contains_key(topic) {
                known.insert(topic.clone(), TopicState::default());
                entries.push(Entry::Topic(topic.to_string()));
            }
        }
        for of in queues.iter().filter(|of| of.topic.class() == Class::Flow) {
            let known = known.entry(of.topic.clone()).or_default();
            if known.find(&of.name).is_none() {
                let id = self.store.number();
                let queue = Queue::new(id, self.store.clone());
                known.add(&of.name, Kind::Queue(queue));
                entries.push(queue_entry(id, of));
                new_queues.push(of);
            }
        }
        self.store.note(&entries).inspect_err(|_| {
            // Not on disk, so not there.
            for of in new_queues {
                if let Some(topic) = known.get_mut(&of.topic) {
                    topic.remove(&of.name);
                }
            }
        })
    }

    fn publish_record(&self, queues: &[Arc<Queue>], envelope: Envelope) -> Result<u64, BusError> {
        let ids = queues.iter().map(|queue| queue.id).collect();
        let (record, ticket): (Arc<Record>, u64) = self.store.put(ids, envelope)?;
        for queue in queues {
            queue.push(record.clone(), false);
            queue.pump();
        }
        self.store.tidy();
        Ok(ticket)
    }

    /// Delivers to each reader; records of all readers are stored once.
    fn fan_out(&self, readers: &[Reader], envelope: Envelope) -> Result<(Routed, u64), BusError> {
        let mut queues = Vec::new();
        let mut live = Vec::with_capacity(readers.len());
        for reader in readers {
            match &reader.kind {
                Kind::Queue(queue) => queues.push(queue.clone()),
                other => live.push(other),
            }
        }
        let mut routed = !queues.is_empty();
        let mut envelope = Some(envelope);
        let last = live.len();
        for (at, kind) in live.into_iter().enumerate() {
            let wanted = at + 1 < last || !queues.is_empty();
            let copy = if wanted {
                envelope.clone()
            } else {
                envelope.take()
            };
            let Some(copy) = copy else { continue };
            routed |= match kind {
                Kind::Group(group) => group.offer(copy),
                Kind::Private(tap) => tap.pass(copy).is_ok(),
                Kind::Queue(_) => false,
            };
        }
        let mut ticket = 0;
        if let Some(envelope) = envelope.take().filter(|_| !queues.is_empty()) {
            ticket = self.publish_record(&queues, envelope)?;
        }
        Ok((
            if routed {
                Routed::Queued
            } else {
                Routed::Nowhere
            },
            ticket,
        ))
    }

    fn remove_tap(&self, subscription: &Subscription, tap: &Arc<Tap>) {
        let mut topics = self.topics.write();
        let Some(topic) = topics.get_mut(&subscription.topic) else {
            return;
        };
        let native = self.options.mode == Mode::Native;
        Arc::make_mut(&mut topic.readers).retain(|reader| match &reader.kind {
            Kind::Private(other) => !Arc::ptr_eq(other, tap),
            Kind::Group(group) if *reader.name == *subscription.name => {
                !(group.leave(tap) && native)
            }
            _ => true,
        });
    }
}

impl TopicState {
    fn find(&self, name: &str) -> Option<&Kind> {
        let named =
            |reader: &&Reader| !matches!(reader.kind, Kind::Private(_)) && *reader.name == *name;
        Some(&self.readers.iter().find(named)?.kind)
    }

    fn add(&mut self, name: &str, kind: Kind) {
        Arc::make_mut(&mut self.readers).push(Reader {
            name: name.into(),
            kind,
        });
    }

    fn remove(&mut self, name: &str) -> Option<Kind> {
        let kind = self.find(name)?.clone();
        Arc::make_mut(&mut self.readers)
            .retain(|reader| matches!(reader.kind, Kind::Private(_)) || *reader.name != *name);
        Some(kind)
    }
}

#[async_trait]
impl Bus for EmbeddedBus {
    fn lossless(&self) -> bool {
        true
    }

    fn mode(&self) -> Mode {
        self.core.options.mode
    }

    async fn declare(&self, topics: &[Topic], queues: &[Subscription]) -> Result<(), BusError> {
        self.core.ready()?;
        let ticket = self.core.declare(topics, queues)?;
        self.core.store.safe(ticket).await
    }

    async fn publish(
        &self,
        target: &Target,
        envelope: Envelope,
        promise: Promise,
    ) -> Result<Routed, BusError> {
        let core = &self.core;
        core.ready()?;
        let limit = core.options.max_body;
        if envelope.body.len() > limit {
            return Err(BusError::TooLarge { limit });
        }
        let (routed, ticket) = match target {
            Target::Topic(topic) => match core.readers(topic) {
                Some(readers) => core.fan_out(&readers, envelope)?,
                None => (Routed::Nowhere, 0),
            },
            Target::Subscription(subscription) => match core.reader(subscription) {
                Some(kind) => {
                    let name = subscription.name.as_str().into();
                    core.fan_out(&[Reader { name, kind }], envelope)?
                }
                None => (Routed::Nowhere, 0),
            },
            Target::Inbox(name) => {
                let inbox = core.inboxes.read().get(name).cloned();
                let taken = inbox.is_some_and(|tap| tap.pass(envelope).is_ok());
                (
                    if taken {
                        Routed::Queued
                    } else {
                        Routed::Nowhere
                    },
                    0,
                )
            }
        };
        if promise == Promise::Confirmed && ticket > 0 {
            core.store.safe(ticket).await?;
        }
        Ok(routed)
    }

    async fn consume(
        &self,
        subscription: &Subscription,
        how: Consume,
        sink: Arc<dyn Sink>,
    ) -> Result<Box<dyn Consumer>, BusError> {
        let core = &self.core;
        core.ready()?;
        let ticket = core.declare(
            std::slice::from_ref(&subscription.topic),
            std::slice::from_ref(subscription),
        )?;
        core.store.safe(ticket).await?;
        let tap = core.tap(sink);
        let source = match subscription.topic.class() {
            Class::Flow => {
                let Some(Kind::Queue(queue)) = core.reader(subscription) else {
                    return Err(BusError::Refused);
                };
                let slot = queue.join(tap.clone(), how.prefetch);
                queue.pump();
                Source::Queue(queue, slot)
            }
            Class::Request => {
                core.join_group(subscription, &tap);
                Source::Topic(subscription.clone())
            }
            Class::Response | Class::Notify => {
                let mut topics = core.topics.write();
                topics
                    .entry(subscription.topic.clone())
                    .or_default()
                    .add(&subscription.name, Kind::Private(tap.clone()));
                Source::Topic(subscription.clone())
            }
        };
        Ok(Box::new(EmbeddedConsumer {
            core: core.clone(),
            source,
            tap,
        }))
    }

    async fn open_inbox(
        &self,
        name: &str,
        sink: Arc<dyn Sink>,
    ) -> Result<Box<dyn Consumer>, BusError> {
        self.core.ready()?;
        let tap = self.core.tap(sink);
        let name: Arc<str> = name.into();
        self.core.inboxes.write().insert(name.clone(), tap.clone());
        Ok(Box::new(EmbeddedConsumer {
            core: self.core.clone(),
            source: Source::Inbox(name),
            tap,
        }))
    }

    async fn queue_state(&self, of: &Subscription) -> Result<Option<QueueState>, BusError> {
        self.core.ready()?;
        let (ready, consumers) = match self.core.reader(of) {
            Some(Kind::Queue(queue)) => queue.counts(),
            Some(Kind::Group(group)) => group.counts(),
            Some(Kind::Private(_)) | None => return Ok(None),
        };
        Ok(Some(QueueState {
            ready: ready as u64,
            consumers: consumers as u32,
        }))
    }

    async fn take(&self, from: &Subscription) -> Result<Option<Delivery>, BusError> {
        self.core.ready()?;
        match self.core.reader(from) {
            Some(Kind::Queue(queue)) => queue.take().await,
            Some(Kind::Group(group)) => Ok(group.take().map(|envelope| Delivery {
                envelope,
                redelivered: false,
                settle: None,
            })),
            Some(Kind::Private(_)) | None => Ok(None),
        }
    }

    async fn delete_queue(&self, of: &Subscription) -> Result<bool, BusError> {
        self.core.ready()?;
        let removed = {
            let mut topics = self.core.topics.write();
            topics.get_mut(&of.topic).and_then(|t| t.remove(&of.name))
        };
        match removed {
            Some(Kind::Queue(queue)) => {
                queue.end();
                let ticket = self.core.store.note(&[Entry::QueueGone(queue.id)])?;
                self.core.store.safe(ticket).await?;
                Ok(true)
            }
            other => Ok(other.is_some()),
        }
    }

    async fn delete_topic(&self, topic: &Topic) -> Result<bool, BusError> {
        self.core.ready()?;
        let ticket = {
            let mut topics = self.core.topics.write();
            if topics.get(topic).is_none_or(|t| !t.readers.is_empty()) {
                return Ok(false);
            }
            topics.remove(topic);
            self.core
                .store
                .note(&[Entry::TopicGone(topic.to_string())])?
        };
        self.core.store.safe(ticket).await?;
        Ok(true)
    }

    async fn claim(&self, name: &str) -> Result<Option<Box<dyn Claim>>, BusError> {
        self.core.ready()?;
        if !self.core.claims.lock().insert(name.to_owned()) {
            return Ok(None);
        }
        Ok(Some(Box::new(EmbeddedClaim {
            core: self.core.clone(),
            name: name.to_owned(),
        })))
    }

    fn link(&self) -> watch::Receiver<Link> {
        self.core.link.subscribe()
    }

    async fn close(&self) {
        self.core.closed.store(true, Ordering::Release);
        let taps = std::mem::take(&mut *self.core.taps.lock());
        for tap in taps.iter().filter_map(std::sync::Weak::upgrade) {
            tap.shut().await;
        }
        self.core.store.close();
        self.core.link.send_replace(Link::Down);
    }
}

impl Core {
    fn tap(&self, sink: Arc<dyn Sink>) -> Arc<Tap> {
        let tap = Tap::new(sink);
        let mut taps = self.taps.lock();
        if taps.len() == taps.capacity() {
            taps.retain(|tap| tap.strong_count() > 0);
        }
        taps.push(Arc::downgrade(&tap));
        tap
    }

    fn join_group(&self, of: &Subscription, tap: &Arc<Tap>) {
        let group = {
            let mut topics = self.topics.write();
            let topic = topics.entry(of.topic.clone()).or_default();
            let group = match topic.find(&of.name) {
                Some(Kind::Group(group)) => group.clone(),
                _ => {
                    let waits = self.options.mode == Mode::Interop;
                    let group = Arc::new(Group::new(waits));
                    topic.add(&of.name, Kind::Group(group.clone()));
                    group
                }
            };
            // Under the lock, so that a leaving last server does not take the group with it.
            group.enter(tap.clone());
            group
        };
        group.serve_waiting(tap);
    }
}

/// Where a consumer is attached.
enum Source {
    Queue(Arc<Queue>, u64),
    Topic(Subscription),
    Inbox(Arc<str>),
}

/// A running consumer; dropping it stops it too.
struct EmbeddedConsumer {
    core: Arc<Core>,
    source: Source,
    tap: Arc<Tap>,
}

impl EmbeddedConsumer {
    fn detach(&self) {
        match &self.source {
            Source::Queue(queue, slot) => queue.leave(*slot),
            Source::Topic(of) => self.core.remove_tap(of, &self.tap),
            Source::Inbox(name) => {
                let mut inboxes = self.core.inboxes.write();
                if inboxes
                    .get(name)
                    .is_some_and(|tap| Arc::ptr_eq(tap, &self.tap))
                {
                    inboxes.remove(name);
                }
            }
        }
    }
}

#[async_trait]
impl Consumer for EmbeddedConsumer {
    async fn stop(&self) {
        self.detach();
        self.tap.shut().await;
    }
}

impl Drop for EmbeddedConsumer {
    fn drop(&mut self) {
        if self.tap.is_open() {
            self.detach();
            self.tap.close();
        }
    }
}

struct EmbeddedClaim {
    core: Arc<Core>,
    name: String,
}

impl Claim for EmbeddedClaim {
    fn holds(&self) -> bool {
        !self.core.closed.load(Ordering::Acquire)
    }
}

impl Drop for EmbeddedClaim {
    fn drop(&mut self) {
        self.core.claims.lock().remove(&self.name);
    }
}
