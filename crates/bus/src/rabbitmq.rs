//! The bus on RabbitMQ (AMQP 0-9-1).
//!
//! Two connections: the broker may block the one that publishes. Publishers share a few channels with
//! confirms, consumers a few others; declarations and deletions run apart. What a process sends to its own inbox, such as the
//! answer to a question of its own, does not pass through the broker. After an outage everything
//! this process consumes or claims is set up again under its names before the link is `Up`. Shared
//! with processors of others, exchanges, queues and messages are exactly theirs.

mod arguments;
mod claims;
mod connected;
mod consumers;
mod core;
mod deferred;
mod endpoint;
#[cfg(test)]
mod fuzz;
mod held;
mod lanes;
mod options;
mod patience;
mod session;
mod settle;
mod supervisor;
mod topology;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use async_trait::async_trait;
use parking_lot::RwLock;
use tg_schemas::topic::Class;
use tg_schemas::{Subscription, Topic};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::claims::{ClaimState, Claims};
use self::connected::Connected;
use self::consumers::{Entry, Registry, Source};
use self::core::Core;
pub use self::endpoint::ConnectError;
use self::endpoint::Endpoint;
pub use self::options::{INBOX_EXCHANGE, RabbitOptions, RecordQueues};
use crate::bus::{
    Bus, BusError, Claim, Consume, Consumer, Delete, Deleted, Delivery, Envelope, Link,
    PublishMode, QueueState, Routed, Sink, Target, check_size,
};
use crate::mode::WireRules;
use crate::task::{Starter, TaskKind, Tasks};

/// The bus on a broker. Dropping it disconnects.
pub struct RabbitBus {
    core: Arc<Core>,
}

impl RabbitBus {
    /// Connects to a broker. Fails at once if it cannot; later outages are bridged.
    ///
    /// # Errors
    /// [`ConnectError`]; the log says more where nobody answers.
    pub async fn connect(
        url: &str,
        rules: impl Into<&'static WireRules>,
        options: RabbitOptions,
    ) -> Result<Self, ConnectError> {
        let rules = rules.into();
        let endpoint = Endpoint::new(url, &options)?;
        let tasks = Tasks::default();
        let session = Connected::open(&endpoint, false, 1, &tasks, &options)
            .await
            .map_err(|error| {
                tracing::error!(%error, "cannot connect to the broker");
                ConnectError::of(&error)
            })?;
        let starter = Starter::here(tasks.clone());
        let core = Arc::new(Core {
            rules,
            endpoint,
            session: RwLock::new(None),
            link: watch::Sender::new(Link::Down),
            generation: AtomicU64::new(1),
            reads_longest: AtomicBool::new(false),
            consumers: Registry::new(rules, starter.clone(), &options),
            options,
            claims: Claims::new(rules),
            tasks,
            starter,
            closing: CancellationToken::new(),
        });
        core.raise(session.clone());
        let supervisor = supervisor::run(core.clone(), session);
        core.tasks.spawn(TaskKind::Connection, supervisor);
        Ok(Self { core })
    }

    async fn add(
        &self,
        source: Source,
        sink: Arc<dyn Sink>,
    ) -> Result<Box<dyn Consumer>, BusError> {
        let session = self.core.session()?;
        let entry = self.core.consumers.add(&session, source, sink).await?;
        Ok(Box::new(RabbitConsumer {
            core: self.core.clone(),
            entry: Some(entry),
        }))
    }
}

impl Drop for RabbitBus {
    fn drop(&mut self) {
        self.core.closing.cancel();
    }
}

#[async_trait]
impl Bus for RabbitBus {
    fn max_body(&self) -> usize {
        self.core.options.max_body
    }

    fn rules(&self) -> &'static WireRules {
        self.core.rules
    }

    fn address(&self) -> String {
        self.core.endpoint.address()
    }

    async fn declare(&self, topics: &[Topic], queues: &[Subscription]) -> Result<(), BusError> {
        let session = self.core.session()?;
        topology::declare(&session, self.core.rules, topics, queues).await
    }

    async fn relay(&self, from: &Topic, to: &[Topic]) -> Result<(), BusError> {
        let session = self.core.session()?;
        topology::relay(&session, self.core.rules, from, to).await
    }

    async fn publish(
        &self,
        target: &Target,
        envelope: Envelope,
        promise: PublishMode,
    ) -> Result<Routed, BusError> {
        check_size(&envelope, self.core.options.max_body)?;
        if let Target::Inbox(name) = target
            && let Some(own) = self.core.consumers.inbox(name)
        {
            // An alarm of the broker does not concern what does not pass through it; without a session it would be lost elsewhere, too.
            self.core.session()?;
            // Nothing here waits: a busy publisher must let others run, too.
            tokio::task::consume_budget().await;
            return Ok(match own.pass(envelope) {
                None => Routed::Queued,
                Some(_) => Routed::Unroutable,
            });
        }
        let session = self.core.publishing_session().await?;
        let Some(address) = self.core.address(&session, target).await? else {
            return Ok(Routed::Unroutable);
        };
        let lanes = &session.lanes;
        match promise {
            PublishMode::Confirmed => lanes.confirmed(address, envelope).await,
            PublishMode::FireAndForget => {
                lanes.unconfirmed(&session, address, envelope).await?;
                Ok(Routed::Queued)
            }
            PublishMode::Flushed => {
                lanes.flushed(&session, address, envelope).await?;
                Ok(Routed::Queued)
            }
        }
    }

    async fn consume(
        &self,
        subscription: &Subscription,
        how: Consume,
        sink: Arc<dyn Sink>,
    ) -> Result<Box<dyn Consumer>, BusError> {
        let source = Source::Subscription(subscription.clone(), how);
        self.add(source, sink).await
    }

    async fn observe(
        &self,
        topic: &Topic,
        sink: Arc<dyn Sink>,
    ) -> Result<Box<dyn Consumer>, BusError> {
        self.add(Source::Observer(topic.clone()), sink).await
    }

    async fn open_inbox(
        &self,
        name: &str,
        sink: Arc<dyn Sink>,
    ) -> Result<Box<dyn Consumer>, BusError> {
        self.add(Source::Inbox(name.to_owned()), sink).await
    }

    async fn queue_state(&self, of: &Subscription) -> Result<Option<QueueState>, BusError> {
        let session = self.core.session()?;
        topology::look(&session, &self.core.queue(of)).await
    }

    async fn take(&self, from: &Subscription) -> Result<Option<Delivery>, BusError> {
        let session = self.core.session()?;
        let delivery = topology::take(&session, &self.core.queue(from)).await?;
        Ok(delivery.map(consumers::to_single))
    }

    async fn delete_queue(&self, of: &Subscription, when: Delete) -> Result<Deleted, BusError> {
        let session = self.core.session()?;
        let name = self.core.queue(of);
        if of.topic.class() == Class::Flow {
            let source = self.core.exchange(&of.topic);
            topology::delete_record_queue(&session, &source, &name, when).await
        } else {
            topology::delete_queue(&session, &name, when).await
        }
    }

    async fn delete_topic(&self, topic: &Topic) -> Result<bool, BusError> {
        let session = self.core.session()?;
        topology::delete_exchange(&session, &self.core.exchange(topic), true).await
    }

    async fn delete_relay(&self, topic: &Topic) -> Result<bool, BusError> {
        let session = self.core.session()?;
        // What it passes on to counts as use.
        topology::delete_exchange(&session, &self.core.exchange(topic), false).await
    }

    async fn claim(&self, name: &str) -> Result<Option<Box<dyn Claim>>, BusError> {
        let session = self.core.session()?;
        let held = self.core.claims.claim(&session, name).await?;
        Ok(held.map(|held| {
            Box::new(RabbitClaim {
                core: self.core.clone(),
                held,
            }) as Box<dyn Claim>
        }))
    }

    fn link(&self) -> watch::Receiver<Link> {
        self.core.link.subscribe()
    }

    async fn close(&self) {
        self.core.consumers.clear();
        self.core.closing.cancel();
        self.core.tasks.finish().await;
        self.core.link.send_replace(Link::Down);
    }
}

/// A running consumer; dropping it stops it too.
struct RabbitConsumer {
    core: Arc<Core>,
    entry: Option<Arc<Entry>>,
}

#[async_trait]
impl Consumer for RabbitConsumer {
    async fn stop(&self) {
        if let Some(entry) = &self.entry {
            self.core.stop(entry).await;
        }
    }
}

impl Drop for RabbitConsumer {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take().filter(|entry| !entry.is_stopped()) {
            let core = self.core.clone();
            let _context = self.core.starter.enter();
            self.core
                .tasks
                .spawn(TaskKind::Background, async move { core.stop(&entry).await });
        }
    }
}

struct RabbitClaim {
    core: Arc<Core>,
    held: Arc<ClaimState>,
}

impl Claim for RabbitClaim {
    fn holds(&self) -> bool {
        self.held.holds()
    }
}

impl Drop for RabbitClaim {
    fn drop(&mut self) {
        let (core, held) = (self.core.clone(), self.held.clone());
        let _context = self.core.starter.enter();
        self.core.tasks.spawn(TaskKind::Background, async move {
            let session = core.session().ok();
            core.claims
                .release(session.as_deref().map(|connected| &**connected), &held)
                .await;
        });
    }
}
