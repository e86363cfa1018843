//! What a consumer or a claim holds, and how it is given up.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use tg_schemas::Subscription;

use super::core::Core;
use super::queue::Queue;
use crate::bus::{Claim, Consumer};
use crate::tap::Tap;

/// Where a consumer is attached.
pub(super) enum Source {
    /// To a record queue, under a number.
    Queue(Arc<Queue>, u64),
    /// To a topic of questions, answers or notices.
    Topic(Subscription),
    /// To an inbox.
    Inbox(Arc<str>),
}

/// A running consumer; dropping it stops it too.
pub(super) struct EmbeddedConsumer {
    pub(super) core: Arc<Core>,
    pub(super) source: Source,
    pub(super) tap: Arc<Tap>,
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

/// A claimed name.
pub(super) struct EmbeddedClaim {
    pub(super) core: Arc<Core>,
    pub(super) name: String,
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
