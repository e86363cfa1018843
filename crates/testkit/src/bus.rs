//! Either bus for a test: a place to connect to, sinks that collect, bounded waits.
//!
//! RabbitMQ is one node that all tests share, with a virtual host for each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::shared_node::VirtualHost;
use tempfile::TempDir;
use tg_bus::Mode;
use tg_bus::bus::{
    Bus, BusError, Consume, Consumer, Delete, Deleted, Delivery, Envelope, Link, PublishMode,
    Routed, Sink, Target,
};
use tg_bus::embedded::{EmbeddedBus, EmbeddedOptions};
use tg_bus::rabbitmq::{RabbitBus, RabbitOptions, RecordQueues};
use tg_schemas::topic::Class;
use tg_schemas::{Headers, Subscription, Topic};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// No wait of a test is longer.
pub const BOUND: Duration = Duration::from_secs(60);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(1);

/// Waits for something, with a bound.
pub async fn within<F: Future>(future: F) -> F::Output {
    timeout(BOUND, future).await.expect("took too long")
}

/// Asks again and again until the answer is the wanted one, with a bound.
pub async fn until(mut check: impl AsyncFnMut() -> bool) {
    within(async {
        while !check().await {
            // Whoever only yields keeps a processor busy until it is so.
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
}

/// A place where processes meet.
pub enum World {
    /// In this process, records on disk.
    Embedded(
        EmbeddedBus,
        Mode,
        /// Kept until the end.
        TempDir,
    ),
    /// A broker.
    Rabbit(String, Mode),
    /// A broker with quorum queues.
    Quorum(String),
}

impl World {
    /// A fresh embedded bus.
    pub async fn embedded(mode: Mode) -> Self {
        let dir = TempDir::new().unwrap();
        let options = EmbeddedOptions {
            rules: mode.rules(),
            max_body: LARGEST,
            ..EmbeddedOptions::default()
        };
        let bus = EmbeddedBus::open_with(dir.path(), options).unwrap();
        Self::Embedded(bus, mode, dir)
    }

    /// A virtual host of the node that all tests share.
    pub async fn rabbit(mode: Mode) -> Self {
        let host = VirtualHost::new().await.unwrap();
        Self::Rabbit(host.into_url(), mode)
    }

    /// The same with quorum queues.
    pub async fn quorum() -> Self {
        let host = VirtualHost::new().await.unwrap();
        Self::Quorum(host.into_url())
    }

    /// Another process (on an embedded bus: the same one).
    pub async fn connect(&self) -> Arc<dyn Bus> {
        match self {
            Self::Embedded(bus, ..) => Arc::new(bus.clone()),
            Self::Rabbit(url, mode) => Arc::new(connect(url, *mode).await),
            Self::Quorum(url) => Arc::new(connect_quorum(url).await),
        }
    }

    /// Its mode.
    pub fn mode(&self) -> Mode {
        match self {
            Self::Embedded(_, mode, _) | Self::Rabbit(_, mode) => *mode,
            Self::Quorum(_) => Mode::Native,
        }
    }
}

/// Largest body on any bus of these tests.
pub const LARGEST: usize = 2 << 20;

/// Connects to a broker.
pub async fn connect(url: &str, mode: Mode) -> RabbitBus {
    connect_as(url, mode, RecordQueues::Classic).await
}

/// Connects to a broker whose records are in quorum queues.
pub async fn connect_quorum(url: &str) -> RabbitBus {
    connect_as(url, Mode::Native, RecordQueues::Quorum).await
}

async fn connect_as(url: &str, mode: Mode, queues: RecordQueues) -> RabbitBus {
    let options = RabbitOptions {
        max_body: LARGEST,
        queues,
        ..RabbitOptions::of(mode)
    };
    RabbitBus::connect(url, mode, options).await.unwrap()
}

/// A topic that no other test has.
pub fn topic(class: Class) -> Topic {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Topic::system(class, &format!("test-{}-{number}", std::process::id()))
}

/// A subscription.
pub fn sub(topic: &Topic, name: &str) -> Subscription {
    Subscription {
        topic: topic.clone(),
        name: name.to_owned(),
    }
}

/// A message with this text as body, and its beginning as id: headers are short.
pub fn message(text: &str) -> Envelope {
    Envelope {
        headers: Arc::new(Headers {
            id: Some(text.chars().take(64).collect()),
            ..Headers::default()
        }),
        body: text.to_owned().into(),
        ..Envelope::default()
    }
}

/// Deletes a queue with what is in it; whether there was one.
pub async fn delete(bus: &dyn Bus, queue: &Subscription) -> bool {
    let gone = within(bus.delete_queue(queue, Delete::Always)).await;
    matches!(gone.unwrap(), Deleted::Gone { .. })
}

/// Body as text.
pub fn text(delivery: &Delivery) -> String {
    String::from_utf8(delivery.envelope.body.to_vec()).unwrap()
}

/// What the tests do all the time.
#[expect(async_fn_in_trait, reason = "called directly in tests only")]
pub trait BusExt {
    /// Publishes with confirmation.
    ///
    /// # Errors
    /// As for [`Bus::publish`].
    async fn say(&self, target: &Target, text: &str) -> Result<Routed, BusError>;
    /// Publishes to a topic with confirmation; it must be queued.
    async fn send(&self, topic: &Topic, text: &str);
    /// Consumes into an inbox of the test.
    async fn listen(&self, to: &Subscription, prefetch: u16) -> Ear;
}

impl BusExt for dyn Bus {
    async fn say(&self, target: &Target, text: &str) -> Result<Routed, BusError> {
        within(self.publish(target, message(text), PublishMode::Confirmed)).await
    }

    async fn send(&self, topic: &Topic, text: &str) {
        let routed = self.say(&Target::Topic(topic.clone()), text).await;
        assert_eq!(routed, Ok(Routed::Queued), "{topic} {text}");
    }

    async fn listen(&self, to: &Subscription, prefetch: u16) -> Ear {
        let (sink, deliveries) = collector();
        let consumer = within(self.consume(to, Consume::prefetch(prefetch), sink))
            .await
            .unwrap();
        Ear {
            consumer,
            deliveries,
        }
    }
}

/// A consumer and what it got.
pub struct Ear {
    /// The consumer.
    pub consumer: Box<dyn Consumer>,
    /// What was delivered.
    pub deliveries: mpsc::UnboundedReceiver<Delivery>,
}

impl Ear {
    /// The next delivery.
    pub async fn next(&mut self) -> Delivery {
        within(self.deliveries.recv())
            .await
            .expect("consumer is gone")
    }

    /// Takes and acknowledges the next deliveries; their texts.
    pub async fn texts(&mut self, count: usize) -> Vec<String> {
        let mut texts = Vec::new();
        for _ in 0..count {
            let delivery = self.next().await;
            texts.push(text(&delivery));
            delivery.ack();
        }
        texts
    }

    /// What is there now.
    pub fn now(&mut self) -> Option<Delivery> {
        self.deliveries.try_recv().ok()
    }

    /// Stops the consumer.
    pub async fn stop(&self) {
        within(self.consumer.stop()).await;
    }
}

struct Collector(mpsc::UnboundedSender<Delivery>);

impl Sink for Collector {
    fn deliver(&self, delivery: Delivery) {
        let _ = self.0.send(delivery);
    }
}

/// A sink that keeps deliveries for the test.
pub fn collector() -> (Arc<dyn Sink>, mpsc::UnboundedReceiver<Delivery>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Arc::new(Collector(sender)), receiver)
}

/// Waits for the link to be up after a given generation.
pub async fn up_after(bus: &dyn Bus, generation: u64) -> u64 {
    let mut link = bus.link();
    let up = |link: &Link| matches!(link, Link::Up { generation: now } if *now > generation);
    let now = *within(link.wait_for(up)).await.unwrap();
    match now {
        Link::Up { generation } => generation,
        Link::Down | Link::Blocked => 0,
    }
}
