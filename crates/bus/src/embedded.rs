//! The bus inside one process: no broker, no network.
//!
//! A publish hands its message to every sink before it returns. Records are on disk before that (unless
//! the bus was opened in memory), so they survive `kill -9`; questions, answers and notices live in
//! memory only. A slow consumer of records delays nobody: beyond its prefetch they wait in its queue,
//! and beyond a budget of memory on disk only. Other processes cannot reach this bus.

mod consumer;
mod copied;
mod core;
mod frame;
#[cfg(test)]
mod fuzz;
mod live;
mod log;
mod options;
mod queue;
mod record;
mod recovery;
mod store;
mod waiting;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use parking_lot::{Mutex, RwLock};
use tg_schemas::topic::Class;
use tg_schemas::{Subscription, Topic};
use tg_storage::{Durability, OwnerLock, StorageError};
use tokio::sync::watch;

use self::consumer::{EmbeddedClaim, EmbeddedConsumer, Source};
pub use self::copied::LogCopy;
use self::core::{Core, Kind, Reader};
use self::frame::Entry;
pub use self::options::EmbeddedOptions;
use self::queue::Queue;
use self::store::Store;
use crate::bus::{
    Bus, BusError, Claim, Consume, Consumer, Delete, Deleted, Delivery, Envelope, Link,
    PublishMode, QueueState, Routed, Sink, Target, check_size,
};
use crate::mode::WireRules;

/// The embedded bus. Clones share it.
#[derive(Clone)]
pub struct EmbeddedBus {
    core: Arc<Core>,
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

    /// Opens a bus whose records are kept in a directory. Blocks: call it at start-up.
    ///
    /// # Errors
    /// [`StorageError::InUse`] while another process has the directory; else it cannot be read or written, and no record in
    /// it is lost.
    pub fn open(dir: &Path, durability: Durability) -> Result<Self, StorageError> {
        let options = EmbeddedOptions {
            durability,
            ..EmbeddedOptions::default()
        };
        Self::open_with(dir, options)
    }

    /// The process that took a directory last, as it said.
    pub fn taken_by(dir: &Path) -> Option<u32> {
        OwnerLock::taken_by(&log::owner(dir))
    }

    /// The same with options.
    ///
    /// # Errors
    /// As for [`EmbeddedBus::open`].
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

#[async_trait]
impl Bus for EmbeddedBus {
    fn in_process(&self) -> bool {
        true
    }

    fn max_body(&self) -> usize {
        self.core.options.max_body
    }

    fn rules(&self) -> &'static WireRules {
        self.core.options.rules
    }

    async fn declare(&self, topics: &[Topic], queues: &[Subscription]) -> Result<(), BusError> {
        self.core.ready()?;
        let ticket = self.core.declare(topics, queues)?;
        self.core.store.safe(ticket).await
    }

    async fn relay(&self, from: &Topic, to: &[Topic]) -> Result<(), BusError> {
        self.core.ready()?;
        self.core.relay(from, to)
    }

    async fn publish(
        &self,
        target: &Target,
        envelope: Envelope,
        promise: PublishMode,
    ) -> Result<Routed, BusError> {
        // Nothing below waits (unless for the disk): a busy publisher must let others run, too.
        tokio::task::consume_budget().await;
        let core = &self.core;
        core.ready()?;
        check_size(&envelope, core.options.max_body)?;
        let (routed, ticket) = match target {
            Target::Topic(topic) => match core.readers(topic) {
                Some(readers) => core.fan_out(&readers, envelope)?,
                None => (Routed::Unroutable, 0),
            },
            Target::Subscription(subscription) => match core.reader(subscription) {
                Some(kind) => {
                    let name = subscription.name.as_str().into();
                    let off = false;
                    core.fan_out(&[Reader { name, kind, off }], envelope)?
                }
                None => (Routed::Unroutable, 0),
            },
            Target::Inbox(name) => {
                let inbox = core.inboxes.read().get(name).cloned();
                let taken = inbox.is_some_and(|tap| tap.pass(envelope).is_none());
                (
                    if taken {
                        Routed::Queued
                    } else {
                        Routed::Unroutable
                    },
                    0,
                )
            }
            Target::Liveness(name) => match core.inboxes.read().contains_key(name) {
                true => (Routed::Queued, 0),
                false => (Routed::Unroutable, 0),
            },
        };
        if promise == PublishMode::Confirmed && ticket > 0 {
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

    async fn observe(
        &self,
        topic: &Topic,
        sink: Arc<dyn Sink>,
    ) -> Result<Box<dyn Consumer>, BusError> {
        let core = &self.core;
        core.ready()?;
        let ticket = core.declare(std::slice::from_ref(topic), &[])?;
        core.store.safe(ticket).await?;
        let tap = core.tap(sink);
        let mut topics = core.topics.write();
        let state = topics.entry(topic.clone()).or_default();
        state.add("observer", Kind::Observer(tap.clone()));
        drop(topics);
        Ok(Box::new(EmbeddedConsumer {
            core: core.clone(),
            source: Source::Topic(Subscription::service(topic.clone(), "observer")),
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
            Some(Kind::Private(_) | Kind::Observer(_)) | None => return Ok(None),
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
            Some(Kind::Private(_) | Kind::Observer(_)) | None => Ok(None),
        }
    }

    async fn delete_queue(&self, of: &Subscription, when: Delete) -> Result<Deleted, BusError> {
        self.core.ready()?;
        let (queue, messages) = {
            let mut topics = self.core.topics.write();
            let Some(topic) = topics.get_mut(&of.topic) else {
                return Ok(Deleted::Missing);
            };
            let (queue, messages) = match topic.find(&of.name) {
                // Ended under the lock: a publisher that still knows it is told that it is gone.
                Some(Kind::Queue(queue)) => match queue.end(when) {
                    Some(messages) => (Some(queue.id), messages),
                    None => {
                        topic.set_off(&of.name, true);
                        return Ok(Deleted::NotEmpty);
                    }
                },
                Some(Kind::Group(group)) => match group.counts().0 {
                    waiting if waiting > 0 && when == Delete::IfEmpty => {
                        return Ok(Deleted::NotEmpty);
                    }
                    waiting => (None, waiting),
                },
                Some(Kind::Private(_) | Kind::Observer(_)) | None => return Ok(Deleted::Missing),
            };
            topic.remove(&of.name);
            (queue, messages)
        };
        if let Some(queue) = queue {
            let ticket = self.core.store.note(&[Entry::QueueGone(queue)])?;
            self.core.store.safe(ticket).await?;
        }
        Ok(Deleted::Gone {
            messages: messages as u64,
        })
    }

    async fn delete_topic(&self, topic: &Topic) -> Result<bool, BusError> {
        self.core.ready()?;
        let ticket = {
            let mut topics = self.core.topics.write();
            if topics.get(topic).is_none_or(|t| t.is_used()) {
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
