//! What both ends of a question need of their process: the bus, the inbox, tasks, and whether the bus came back
//! just now.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tg_bus::{Bus, BusError, Envelope, Link, PublishMode, Routed, Target, TaskKind, Tasks};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::near::NearServers;

/// How long the bus may take for one message.
const PUBLISH: Duration = Duration::from_secs(5);

/// A process's access to the bus. Cheap to clone.
#[derive(Clone)]
pub struct Port(Arc<Inner>);

struct Inner {
    bus: Arc<dyn Bus>,
    inbox: Arc<str>,
    tasks: Tasks,
    near: NearServers,
    reconnected: Mutex<Option<Instant>>,
}

impl Port {
    /// Access to a bus for a process with this inbox name.
    pub fn new(bus: Arc<dyn Bus>, inbox: Arc<str>) -> Self {
        Self(Arc::new(Inner {
            bus,
            inbox,
            tasks: Tasks::default(),
            near: NearServers::default(),
            reconnected: Mutex::default(),
        }))
    }

    /// The bus.
    pub fn bus(&self) -> &Arc<dyn Bus> {
        &self.0.bus
    }

    /// Name of the process's inbox.
    pub fn inbox(&self) -> &str {
        &self.0.inbox
    }

    /// The process's tasks.
    pub fn tasks(&self) -> &Tasks {
        &self.0.tasks
    }

    /// Servers of this process.
    pub fn near(&self) -> &NearServers {
        &self.0.near
    }

    /// Starts a task.
    pub fn spawn<F: Future<Output = ()> + Send + 'static>(&self, kind: TaskKind, future: F) {
        self.0.tasks.spawn(kind, future);
    }

    /// Cancelled when the process stops and nothing is waited for any more.
    pub fn shutdown(&self) -> &CancellationToken {
        self.0.tasks.shutdown()
    }

    /// Publishes within a bound: a bus that neither takes nor refuses a message is as good as away. What is
    /// then sent again is recognised by its id and number.
    ///
    /// # Errors
    /// What the bus says; [`BusError::Down`] when it says nothing for 5 s.
    pub async fn publish(
        &self,
        target: &Target,
        envelope: Envelope,
        promise: PublishMode,
    ) -> Result<Routed, BusError> {
        let work = self.bus().publish(target, envelope, promise);
        tokio::time::timeout(PUBLISH, work)
            .await
            .unwrap_or_else(|_| {
                metrics::counter!("tg_publish_stuck_total").increment(1);
                Err(BusError::Down)
            })
    }

    /// Publishes without waiting and without a confirmation: the receiver notices what is lost.
    pub fn post(&self, to: Target, envelope: Envelope) {
        let bus = self.bus().clone();
        self.spawn(TaskKind::Handler, async move {
            let _ = bus.publish(&to, envelope, PublishMode::FireAndForget).await;
        });
    }

    /// Whether the bus came back within this time.
    pub fn reconnected_within(&self, span: Duration) -> bool {
        self.0
            .reconnected
            .lock()
            .is_some_and(|at| at.elapsed() < span)
    }

    /// Notes reconnects until the bus is closed.
    pub async fn follow_link(self) {
        let mut link = self.bus().link();
        loop {
            if matches!(*link.borrow_and_update(), Link::Up { generation } if generation > 1) {
                *self.0.reconnected.lock() = Some(Instant::now());
            }
            if link.changed().await.is_err() {
                return;
            }
        }
    }
}
