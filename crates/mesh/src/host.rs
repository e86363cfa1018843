//! Hosting: one [`Host`] per process joins the mesh, attaches processors where configuration says, and leaves.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tg_bus::{Bus, Consume, Consumer, Delivery, Sink, TaskKind};
use tg_rpc::{Peer, PeerOptions, control};
use tg_schemas::processors::{fabric, system_readers};
use tg_schemas::{Error, Frame, Subscription, Topic};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::announce;
use crate::config_source::ConfigSource;
use crate::config_view::{COLLECTION, LIFECYCLE};
use crate::config_watch::{self, Watched};
use crate::mesh::Mesh;
use crate::middleware::Middleware;
use crate::processor::Processor;
use crate::runtime::Runtime;

/// How long each step of leaving the mesh may take.
const LEAVE: Duration = Duration::from_secs(2);

/// A process that hosts processors. Cheap to clone.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    mesh: Mesh,
    watched: Arc<Watched>,
    runtime: Runtime,
    consumers: Mutex<Vec<Box<dyn Consumer>>>,
}

/// A host asks, answers and looks around as the mesh that it is part of.
impl Deref for Host {
    type Target = Mesh;

    fn deref(&self) -> &Mesh {
        &self.0.mesh
    }
}

impl Host {
    /// Joins the mesh: opens the inbox, listens to control and config notices.
    ///
    /// # Errors
    /// When the bus does not take the inbox or the declarations.
    pub async fn start(
        bus: Arc<dyn Bus>,
        config: Arc<dyn ConfigSource>,
        options: PeerOptions,
    ) -> Result<Self, Error> {
        Self::start_with(bus, config, options, None).await
    }

    /// As [`Host::start`], with a layer around all handlers.
    ///
    /// # Errors
    /// As [`Host::start`].
    pub async fn start_with(
        bus: Arc<dyn Bus>,
        config: Arc<dyn ConfigSource>,
        options: PeerOptions,
        middleware: Option<Arc<dyn Middleware>>,
    ) -> Result<Self, Error> {
        let (peer, inbox) = Peer::join(bus, options).await?;
        let mesh = Mesh::new(peer, config, middleware);
        let control = Subscription::service(control::topic(), "control");
        let consume = Consume::prefetch(64);
        let control = mesh
            .bus()
            .consume(&control, consume, Arc::new(Control(mesh.clone())))
            .await?;
        let all = mesh.rules().system_records;
        let queues: Vec<_> = system_readers()
            .map(|(spec, reader)| {
                Subscription::service(Topic::system(spec.role.class(), spec.name), reader.id)
            })
            // Else nobody reads the others.
            .filter(|queue| all || *queue == fabric::dead_letters())
            .collect();
        let topics: Vec<_> = queues.iter().map(|queue| queue.topic.clone()).collect();
        mesh.bus().declare(&topics, &queues).await?;
        let host = Self(Arc::new(Inner {
            mesh,
            watched: Arc::default(),
            runtime: Runtime::default(),
            consumers: Mutex::new(vec![inbox, control]),
        }));
        host.0.watched.add(LIFECYCLE.map(str::to_owned));
        // Whoever writes a record says for which generation of its collection.
        host.0.watched.add([COLLECTION.to_owned()]);
        let (applied, changes) = mpsc::channel(64);
        let watch = config_watch::run(host.mesh().clone(), host.0.watched.clone(), applied);
        host.spawn(TaskKind::Background, watch);
        let this = host.clone();
        host.spawn(TaskKind::Background, async move {
            this.0.runtime.run(&this, changes).await
        });
        host.spawn(TaskKind::Background, announce::run(host.mesh().clone()));
        Ok(host)
    }

    /// What this process sees of the mesh.
    pub fn mesh(&self) -> &Mesh {
        &self.0.mesh
    }

    /// Hosts a processor: subscribes its handlers wherever config says. Returns once what can be
    /// subscribed now is; an exclusive processor whose store another process owns stands by.
    ///
    /// # Errors
    /// None at present: what cannot be subscribed yet is tried again for as long as this process hosts it.
    pub async fn host(&self, processor: Processor) -> Result<(), Error> {
        self.0.watched.add(processor.watched_types());
        self.0.runtime.host(self, processor).await;
        Ok(())
    }

    /// Looks from now on whether consumers take what waits for them. [`Mesh::idle_consumers`] names those that took nothing
    /// for this long although messages waited. On a broker each look costs one question a queue.
    pub fn watch_intake(&self, period: Duration) {
        let host = self.clone();
        self.spawn(TaskKind::Background, async move {
            let bus = host.bus().clone();
            tokio::select! {
                () = host.intakes().watch(&*bus, period) => {}
                () = host.stopping().cancelled() => {}
            }
        });
    }

    /// Stops serving: takes no new work, waits for what is in progress, leaves the mesh. All waiting
    /// together ends after `patience`; leaving takes a few seconds more at most.
    pub async fn stop(&self, patience: Duration) {
        let end = Instant::now() + patience;
        self.stopping().cancel();
        self.0.runtime.detach_all(self.mesh(), end).await;
        let _ = tokio::time::timeout_at(end, self.port().tasks().handlers_idle()).await;
        let consumers = std::mem::take(&mut *self.0.consumers.lock());
        let _ = tokio::time::timeout(LEAVE, async {
            announce::tell(self, "bye", || Some(Vec::new())).await;
            futures::future::join_all(consumers.iter().map(|consumer| consumer.stop())).await;
        })
        .await;
        self.leave().await;
        self.shutdown().cancel();
        let _ = tokio::time::timeout(LEAVE, self.port().tasks().finish()).await;
        let _ = tokio::time::timeout(LEAVE, self.0.runtime.release_all()).await;
        if tokio::time::timeout(LEAVE, self.bus().close())
            .await
            .is_err()
        {
            tracing::warn!("the bus did not close in time");
        }
    }
}

/// Takes broadcasts: cancels and presence.
struct Control(Mesh);

impl Sink for Control {
    fn deliver(&self, mut delivery: Delivery) {
        let envelope = std::mem::take(&mut delivery.envelope);
        match envelope.headers.frame {
            Some(Frame::Cancel) => self.0.server().deliver(&envelope.headers),
            _ => announce::deliver(&self.0, &envelope),
        }
        delivery.ack();
    }
}
