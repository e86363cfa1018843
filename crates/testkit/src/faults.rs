//! A bus that misbehaves on purpose, for tests: loses, delays, doubles, reorders, goes down.
//!
//! Only what a real broker may do: records that were confirmed are never lost, questions and answers
//! may be. Everything random comes from a seed.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tg_schemas::topic::Class;
use tg_schemas::{Frame, Headers, Subscription, Topic};
use tokio::sync::{Mutex as AsyncMutex, watch};

use tg_bus::{
    Bus, BusError, Claim, Consume, Consumer, Delete, Deleted, Delivery, Envelope, Link,
    PublishMode, QueueState, Routed, Settle, Sink, Target, WireRules,
};
use tg_bus::{TaskKind, Tasks};

/// How likely each fault is, from 0 to 1.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    /// A message that is no record vanishes after it was confirmed.
    pub lose: f64,
    /// A message arrives twice.
    pub duplicate: f64,
    /// A message that is no record arrives later than those after it.
    pub delay: f64,
    /// At most this much later.
    pub delay_up_to: Duration,
    /// The publisher is told `Down`, although the message went through.
    pub doubt: f64,
    /// The publisher is told `Down`, and the message did not go through.
    pub refuse: f64,
    /// A record cannot be stored: the disk is full.
    pub full: bool,
}

/// What happens while a flush is waited for.
type OnFlush = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// Wraps a bus.
#[derive(Clone)]
pub struct FaultyBus {
    core: Arc<Core>,
}

struct Core {
    inner: Arc<dyn Bus>,
    faults: Mutex<Faults>,
    on_flush: Mutex<Option<OnFlush>>,
    random: Mutex<StdRng>,
    link: watch::Sender<Link>,
    generation: AtomicU64,
    records: Mutex<Vec<Topic>>,
    published: Mutex<Vec<Topic>>,
    flushed: Mutex<Vec<u32>>,
    answered: Mutex<Vec<(String, Range<u64>)>>,
    waiting: AtomicU64,
    /// Everything on the bus that has a name and was used.
    names: Mutex<BTreeSet<String>>,
    consumers: AsyncMutex<HashMap<u64, Attached>>,
    next: AtomicU64,
    tasks: Tasks,
}

struct Attached {
    source: Source,
    sink: Arc<dyn Sink>,
    running: Option<Box<dyn Consumer>>,
}

#[derive(Clone)]
enum Source {
    Subscription(Subscription, Consume),
    Topic(Topic),
    Inbox(String),
}

impl FaultyBus {
    /// Wraps a bus that behaves; nothing goes wrong until [`FaultyBus::set`].
    pub fn new(inner: Arc<dyn Bus>, seed: u64) -> Self {
        Self {
            core: Arc::new(Core {
                inner,
                faults: Mutex::default(),
                on_flush: Mutex::default(),
                random: Mutex::new(StdRng::seed_from_u64(seed)),
                link: watch::Sender::new(Link::Up { generation: 1 }),
                generation: AtomicU64::new(1),
                records: Mutex::default(),
                published: Mutex::default(),
                flushed: Mutex::default(),
                answered: Mutex::default(),
                waiting: AtomicU64::new(0),
                names: Mutex::default(),
                consumers: AsyncMutex::default(),
                next: AtomicU64::new(0),
                tasks: Tasks::default(),
            }),
        }
    }

    /// Changes what goes wrong from now on.
    pub fn set(&self, faults: Faults) {
        *self.core.faults.lock() = faults;
    }

    /// Each queue has so many messages more than there are, which nobody takes.
    pub fn has_waiting(&self, messages: u64) {
        self.core.waiting.store(messages, Ordering::Relaxed);
    }

    /// Runs this whenever a message is flushed: it has left, and its publisher waits.
    pub fn on_flush(&self, run: impl Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static) {
        *self.core.on_flush.lock() = Some(Arc::new(run));
    }

    /// The topics of the records that were confirmed, in their order.
    pub fn confirmed(&self) -> Vec<Topic> {
        self.core.records.lock().clone()
    }

    /// The topics of the questions and records that publishers gave to the bus, in their order.
    pub fn published(&self) -> Vec<Topic> {
        self.core.published.lock().clone()
    }

    /// How many parts of an answer each flushed message has.
    pub fn flushed(&self) -> Vec<u32> {
        self.core.flushed.lock().clone()
    }

    /// The numbers of the parts that each message of the answer to a question has.
    pub fn answered(&self, question: &str) -> Vec<Range<u64>> {
        let answered = self.core.answered.lock();
        let of = answered.iter().filter(|(id, _)| id == question);
        of.map(|(_, parts)| parts.clone()).collect()
    }

    /// The topics, queues and inboxes that were declared, read or published to, as the bus names them.
    pub fn names(&self) -> Vec<String> {
        self.core.names.lock().iter().cloned().collect()
    }

    /// Cuts the connection: `Down` at once, consumers are gone, what is handed out comes again.
    pub async fn go_down(&self) {
        self.core.link.send_replace(Link::Down);
        self.core.generation.fetch_add(1, Ordering::SeqCst);
        for attached in self.core.consumers.lock().await.values_mut() {
            if let Some(running) = attached.running.take() {
                running.stop().await;
            }
        }
    }

    /// Connects again: consumers first, then everybody is told.
    pub async fn come_up(&self) {
        let core = &self.core;
        for attached in core.consumers.lock().await.values_mut() {
            if attached.running.is_none() {
                let started = core.start(&attached.source, &attached.sink).await;
                attached.running = started.ok();
            }
        }
        let generation = core.generation.load(Ordering::SeqCst);
        core.link.send_replace(Link::Up { generation });
    }

    /// Claims to be blocked, or not any more.
    pub fn block(&self, blocked: bool) {
        let generation = self.core.generation.load(Ordering::SeqCst);
        self.core.link.send_replace(if blocked {
            Link::Blocked
        } else {
            Link::Up { generation }
        });
    }
}

impl Core {
    fn up(&self) -> Result<(), BusError> {
        match *self.link.borrow() {
            Link::Down => Err(BusError::Down),
            Link::Up { .. } | Link::Blocked => Ok(()),
        }
    }

    fn name(&self, what: &dyn std::fmt::Debug) {
        self.names.lock().insert(format!("{what:?}"));
    }

    fn happens(&self, chance: f64) -> bool {
        chance > 0.0 && self.random.lock().random_bool(chance.min(1.0))
    }

    fn later(&self, up_to: Duration) -> Duration {
        up_to.mul_f64(self.random.lock().random::<f64>())
    }

    async fn start(
        self: &Arc<Self>,
        source: &Source,
        sink: &Arc<dyn Sink>,
    ) -> Result<Box<dyn Consumer>, BusError> {
        let sink = Arc::new(FaultySink {
            core: self.clone(),
            generation: self.generation.load(Ordering::SeqCst),
            inner: sink.clone(),
        });
        match source {
            Source::Subscription(subscription, how) => {
                self.inner.consume(subscription, how.clone(), sink).await
            }
            Source::Topic(topic) => self.inner.observe(topic, sink).await,
            Source::Inbox(name) => self.inner.open_inbox(name, sink).await,
        }
    }

    async fn attach(
        self: &Arc<Self>,
        source: Source,
        sink: Arc<dyn Sink>,
    ) -> Result<Box<dyn Consumer>, BusError> {
        self.up()?;
        match &source {
            Source::Subscription(subscription, _) => self.name(subscription),
            Source::Topic(topic) => self.name(topic),
            Source::Inbox(name) => self.name(name),
        }
        let mut consumers = self.consumers.lock().await;
        let running = self.start(&source, &sink).await?;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let attached = Attached {
            source,
            sink,
            running: Some(running),
        };
        consumers.insert(id, attached);
        Ok(Box::new(FaultyConsumer {
            core: self.clone(),
            id,
        }))
    }
}

fn topic_of(target: &Target) -> Option<&Topic> {
    match target {
        Target::Topic(topic) => Some(topic),
        Target::Subscription(subscription) => Some(&subscription.topic),
        Target::Inbox(_) | Target::Liveness(_) => None,
    }
}

/// The question that a message answers, and the numbers of its parts.
fn parts_of(headers: &Headers) -> Option<(String, Range<u64>)> {
    let is_part = matches!(headers.frame, Some(Frame::Part | Frame::Last));
    let (id, first) = headers.id.clone().zip(headers.seq).filter(|_| is_part)?;
    let count = u64::from(headers.parts.unwrap_or(1));
    Some((id, first..first + count))
}

fn is_record(target: &Target) -> bool {
    topic_of(target).is_some_and(|topic| topic.class() == Class::Flow)
}

#[async_trait]
impl Bus for FaultyBus {
    fn max_body(&self) -> usize {
        self.core.inner.max_body()
    }

    fn rules(&self) -> &'static WireRules {
        self.core.inner.rules()
    }

    fn address(&self) -> String {
        self.core.inner.address()
    }

    async fn declare(&self, topics: &[Topic], queues: &[Subscription]) -> Result<(), BusError> {
        self.core.up()?;
        topics.iter().for_each(|topic| self.core.name(topic));
        queues.iter().for_each(|queue| self.core.name(queue));
        self.core.inner.declare(topics, queues).await
    }

    async fn relay(&self, from: &Topic, to: &[Topic]) -> Result<(), BusError> {
        self.core.up()?;
        self.core.inner.relay(from, to).await
    }

    async fn publish(
        &self,
        target: &Target,
        envelope: Envelope,
        promise: PublishMode,
    ) -> Result<Routed, BusError> {
        let core = &self.core;
        core.up()?;
        core.name(target);
        core.published.lock().extend(topic_of(target).cloned());
        core.answered.lock().extend(parts_of(&envelope.headers));
        let faults = *core.faults.lock();
        if core.happens(faults.refuse) {
            return Err(BusError::Down);
        }
        let record = is_record(target);
        if record && faults.full {
            return Err(BusError::Store);
        }
        if !record && core.happens(faults.lose) {
            return Ok(Routed::Queued);
        }
        if core.happens(faults.duplicate) {
            core.inner
                .publish(target, envelope.clone(), promise)
                .await?;
        }
        if !record && core.happens(faults.delay) {
            let pause = core.later(faults.delay_up_to);
            let (inner, target) = (core.inner.clone(), target.clone());
            core.tasks.spawn(TaskKind::Background, async move {
                tokio::time::sleep(pause).await;
                let _ = inner
                    .publish(&target, envelope, PublishMode::FireAndForget)
                    .await;
            });
            return Ok(Routed::Queued);
        }
        let parts = envelope.headers.parts.unwrap_or(1);
        let routed = core.inner.publish(target, envelope, promise).await?;
        if promise == PublishMode::Flushed {
            core.flushed.lock().push(parts);
            let run = core.on_flush.lock().clone();
            if let Some(run) = run {
                run().await;
            }
        }
        if core.happens(faults.doubt) {
            return Err(BusError::Down);
        }
        core.up()?;
        if record && promise == PublishMode::Confirmed {
            core.records.lock().extend(topic_of(target).cloned());
        }
        Ok(routed)
    }

    async fn consume(
        &self,
        subscription: &Subscription,
        how: Consume,
        sink: Arc<dyn Sink>,
    ) -> Result<Box<dyn Consumer>, BusError> {
        let source = Source::Subscription(subscription.clone(), how);
        self.core.attach(source, sink).await
    }

    async fn observe(
        &self,
        topic: &Topic,
        sink: Arc<dyn Sink>,
    ) -> Result<Box<dyn Consumer>, BusError> {
        self.core.attach(Source::Topic(topic.clone()), sink).await
    }

    async fn open_inbox(
        &self,
        name: &str,
        sink: Arc<dyn Sink>,
    ) -> Result<Box<dyn Consumer>, BusError> {
        self.core.attach(Source::Inbox(name.to_owned()), sink).await
    }

    async fn queue_state(&self, of: &Subscription) -> Result<Option<QueueState>, BusError> {
        self.core.up()?;
        let state = self.core.inner.queue_state(of).await?;
        let waiting = self.core.waiting.load(Ordering::Relaxed);
        Ok(state.map(|state| QueueState {
            ready: state.ready + waiting,
            ..state
        }))
    }

    async fn take(&self, from: &Subscription) -> Result<Option<Delivery>, BusError> {
        self.core.up()?;
        self.core.inner.take(from).await
    }

    async fn delete_queue(&self, of: &Subscription, when: Delete) -> Result<Deleted, BusError> {
        self.core.up()?;
        self.core.inner.delete_queue(of, when).await
    }

    async fn delete_topic(&self, topic: &Topic) -> Result<bool, BusError> {
        self.core.up()?;
        self.core.inner.delete_topic(topic).await
    }

    async fn delete_relay(&self, topic: &Topic) -> Result<bool, BusError> {
        self.core.up()?;
        self.core.inner.delete_relay(topic).await
    }

    async fn claim(&self, name: &str) -> Result<Option<Box<dyn Claim>>, BusError> {
        self.core.up()?;
        let claim = self.core.inner.claim(name).await?;
        Ok(claim.map(|inner| {
            Box::new(FaultyClaim {
                core: self.core.clone(),
                inner,
            }) as Box<dyn Claim>
        }))
    }

    fn link(&self) -> watch::Receiver<Link> {
        self.core.link.subscribe()
    }

    async fn close(&self) {
        self.core.tasks.finish().await;
        self.core.consumers.lock().await.clear();
        self.core.inner.close().await;
        self.core.link.send_replace(Link::Down);
    }
}

/// Forgets acknowledgements of deliveries from before a cut.
struct FaultySink {
    core: Arc<Core>,
    generation: u64,
    inner: Arc<dyn Sink>,
}

impl Sink for FaultySink {
    fn deliver(&self, mut delivery: Delivery) {
        let settle = delivery.settle.take();
        let wrapped = Delivery {
            envelope: std::mem::take(&mut delivery.envelope),
            redelivered: delivery.redelivered,
            settle: settle.map(|inner| {
                Box::new(FaultySettle {
                    core: self.core.clone(),
                    generation: self.generation,
                    inner,
                }) as Box<dyn Settle>
            }),
        };
        self.inner.deliver(wrapped);
    }
}

struct FaultySettle {
    core: Arc<Core>,
    generation: u64,
    inner: Box<dyn Settle>,
}

impl Settle for FaultySettle {
    fn ack(self: Box<Self>) {
        if self.core.generation.load(Ordering::SeqCst) == self.generation {
            self.inner.ack();
        } else {
            self.inner.give_back();
        }
    }

    fn give_back(self: Box<Self>) {
        self.inner.give_back();
    }
}

struct FaultyConsumer {
    core: Arc<Core>,
    id: u64,
}

#[async_trait]
impl Consumer for FaultyConsumer {
    async fn stop(&self) {
        let attached = self.core.consumers.lock().await.remove(&self.id);
        if let Some(running) = attached.and_then(|attached| attached.running) {
            running.stop().await;
        }
    }
}

struct FaultyClaim {
    core: Arc<Core>,
    inner: Box<dyn Claim>,
}

impl Claim for FaultyClaim {
    fn holds(&self) -> bool {
        self.core.up().is_ok() && self.inner.holds()
    }
}
