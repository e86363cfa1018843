//! A bus for tests that only notes what is said.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;
use tg_bus::{
    Bus, BusError, Consume, Consumer, Delete, Deleted, Delivery, Envelope, Link, Mode, PublishMode,
    QueueState, Routed, Sink, Target, WireRules,
};
use tg_schemas::{Frame, Headers, Subscription, Topic};
use tokio::sync::watch;
use tokio::time::Instant;

/// Notes what goes to inboxes, to topics and to those who are looked for; knows which processes are connected.
pub(crate) struct Notes {
    pub(crate) link: watch::Sender<Link>,
    pub(crate) said: Mutex<Vec<(Arc<str>, Arc<Headers>)>>,
    /// Processes that are not connected.
    pub(crate) gone: Mutex<Vec<String>>,
    /// When a question was published, whether or not somebody takes it.
    pub(crate) asked: Mutex<Vec<Instant>>,
    /// Nobody takes questions.
    pub(crate) unserved: AtomicBool,
    /// When a process was looked for.
    pub(crate) looked: Mutex<Vec<Instant>>,
    /// How what is said was published, in the same order.
    pub(crate) promises: Mutex<Vec<(Option<Frame>, PublishMode)>>,
    /// Whether a message lay beside its body, in the same order.
    pub(crate) beside: Mutex<Vec<bool>>,
}

impl Default for Notes {
    fn default() -> Self {
        Self {
            link: watch::Sender::new(Link::Up { generation: 1 }),
            said: Mutex::default(),
            gone: Mutex::default(),
            asked: Mutex::default(),
            unserved: AtomicBool::default(),
            looked: Mutex::default(),
            promises: Mutex::default(),
            beside: Mutex::default(),
        }
    }
}

#[async_trait]
impl Bus for Notes {
    fn rules(&self) -> &'static WireRules {
        Mode::Native.rules()
    }

    async fn declare(&self, _: &[Topic], _: &[Subscription]) -> Result<(), BusError> {
        Ok(())
    }

    async fn publish(
        &self,
        target: &Target,
        envelope: Envelope,
        promise: PublishMode,
    ) -> Result<Routed, BusError> {
        match target {
            Target::Liveness(inbox) => {
                self.looked.lock().push(Instant::now());
                if self.gone.lock().iter().any(|gone| **gone == **inbox) {
                    return Ok(Routed::Unroutable);
                }
            }
            Target::Topic(_) => {
                self.asked.lock().push(Instant::now());
                if self.unserved.load(Ordering::Relaxed) {
                    return Ok(Routed::Unroutable);
                }
            }
            Target::Inbox(inbox) => {
                let frame = envelope.headers.frame;
                self.promises.lock().push((frame, promise));
                self.beside.lock().push(envelope.handover.is_some());
                self.said.lock().push((inbox.clone(), envelope.headers));
            }
            _ => {}
        }
        Ok(Routed::Queued)
    }

    async fn consume(
        &self,
        _: &Subscription,
        _: Consume,
        _: Arc<dyn Sink>,
    ) -> Result<Box<dyn Consumer>, BusError> {
        Err(BusError::Refused)
    }

    async fn open_inbox(&self, _: &str, _: Arc<dyn Sink>) -> Result<Box<dyn Consumer>, BusError> {
        Err(BusError::Refused)
    }

    async fn queue_state(&self, _: &Subscription) -> Result<Option<QueueState>, BusError> {
        Ok(None)
    }

    async fn take(&self, _: &Subscription) -> Result<Option<Delivery>, BusError> {
        Ok(None)
    }

    async fn delete_queue(&self, _: &Subscription, _: Delete) -> Result<Deleted, BusError> {
        Ok(Deleted::Missing)
    }

    async fn delete_topic(&self, _: &Topic) -> Result<bool, BusError> {
        Ok(false)
    }

    async fn claim(&self, _: &str) -> Result<Option<Box<dyn tg_bus::Claim>>, BusError> {
        Ok(None)
    }

    fn link(&self) -> watch::Receiver<Link> {
        self.link.subscribe()
    }

    async fn close(&self) {}
}
