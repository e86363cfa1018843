//! A bus with a fuse: the process "dies" at the n-th thing it does for a flow.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use tg_mesh::WireRules;
use tg_mesh::bus::{
    Bus, BusError, Claim, Consume, Consumer, Delete, Deleted, Delivery, Envelope, Link,
    PublishMode, QueueState, Routed, Sink, Target,
};
use tg_schemas::{Subscription, Topic};
use tokio::sync::watch;

/// Counts down; at zero the process is gone, as killed.
#[derive(Clone)]
pub struct Fuse(Arc<AtomicI64>);

impl Fuse {
    pub fn unlimited() -> Self {
        Self(Arc::new(AtomicI64::new(i64::MAX)))
    }

    /// From now on `steps` more steps work.
    pub fn light(&self, steps: i64) {
        self.0.store(steps, Ordering::SeqCst);
    }

    pub fn burn(&self) {
        if self.0.fetch_sub(1, Ordering::SeqCst) <= 0 {
            std::process::abort();
        }
    }
}

pub struct FusedBus {
    pub inner: Arc<dyn Bus>,
    pub fuse: Fuse,
}

#[async_trait]
impl Bus for FusedBus {
    fn rules(&self) -> &'static WireRules {
        self.inner.rules()
    }

    async fn declare(&self, topics: &[Topic], queues: &[Subscription]) -> Result<(), BusError> {
        self.fuse.burn();
        self.inner.declare(topics, queues).await?;
        self.fuse.burn();
        Ok(())
    }

    async fn publish(
        &self,
        target: &Target,
        envelope: Envelope,
        promise: PublishMode,
    ) -> Result<Routed, BusError> {
        self.inner.publish(target, envelope, promise).await
    }

    async fn consume(
        &self,
        subscription: &Subscription,
        how: Consume,
        sink: Arc<dyn Sink>,
    ) -> Result<Box<dyn Consumer>, BusError> {
        self.inner.consume(subscription, how, sink).await
    }

    async fn open_inbox(
        &self,
        name: &str,
        sink: Arc<dyn Sink>,
    ) -> Result<Box<dyn Consumer>, BusError> {
        self.inner.open_inbox(name, sink).await
    }

    async fn queue_state(&self, of: &Subscription) -> Result<Option<QueueState>, BusError> {
        self.inner.queue_state(of).await
    }

    async fn take(&self, from: &Subscription) -> Result<Option<Delivery>, BusError> {
        self.fuse.burn();
        self.inner.take(from).await
    }

    async fn delete_queue(&self, of: &Subscription, when: Delete) -> Result<Deleted, BusError> {
        self.fuse.burn();
        self.inner.delete_queue(of, when).await
    }

    async fn delete_topic(&self, topic: &Topic) -> Result<bool, BusError> {
        self.fuse.burn();
        self.inner.delete_topic(topic).await
    }

    async fn claim(&self, name: &str) -> Result<Option<Box<dyn Claim>>, BusError> {
        self.inner.claim(name).await
    }

    fn in_process(&self) -> bool {
        self.inner.in_process()
    }

    fn link(&self) -> watch::Receiver<Link> {
        self.inner.link()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
