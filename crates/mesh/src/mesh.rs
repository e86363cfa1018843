//! One [`Mesh`] per process: a peer on the bus that watches configuration and presence and hosts processors.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tg_bus::{Bus, Consume, Consumer, Delivery, Mode, Sink, TaskKind};
use tg_rpc::{Peer, PeerOptions, control};
use tg_schemas::{Error, Frame, Subscription};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config_view::{COLLECTION, ConfigView, WORKSPACES};
use crate::config_watch::{self, Watched};
use crate::library_texts;
use crate::presence::{self, PresenceView};
use crate::processor::Processor;
use crate::put_aside;
use crate::runtime::Runtime;
use crate::tally::Tally;

/// How long each step of leaving the mesh may take.
const LEAVE: Duration = Duration::from_secs(2);
/// A process's place in the mesh. Cheap to clone.
#[derive(Clone)]
pub struct Mesh(Arc<Inner>);

struct Inner {
    peer: Peer,
    stopping: CancellationToken,
    config: ConfigView,
    watched: Arc<Watched>,
    presence: PresenceView,
    runtime: Runtime,
    tally: Tally,
    consumers: Mutex<Vec<Box<dyn Consumer>>>,
}

/// A mesh asks, answers and writes records as the peer that it is.
impl Deref for Mesh {
    type Target = Peer;

    fn deref(&self) -> &Peer {
        &self.0.peer
    }
}

impl Mesh {
    /// Joins the mesh: opens the inbox, listens to control and config notices.
    ///
    /// # Errors
    /// When the bus does not take the inbox or the declarations.
    pub async fn start(bus: Arc<dyn Bus>, options: PeerOptions) -> Result<Self, Error> {
        let (peer, inbox) = Peer::join(bus, options).await?;
        let mesh = Self(Arc::new(Inner {
            presence: PresenceView::new(peer.inbox().into()),
            peer,
            stopping: CancellationToken::new(),
            config: ConfigView::default(),
            watched: Arc::default(),
            runtime: Runtime::default(),
            tally: Tally::default(),
            consumers: Mutex::default(),
        }));
        let control = Subscription::service(control::topic(), "control");
        let consume = Consume { prefetch: 64 };
        let control = mesh
            .bus()
            .consume(&control, consume, Arc::new(Control(mesh.clone())))
            .await?;
        let mut queues = vec![put_aside::subscription()];
        if mesh.bus().mode() == Mode::Native {
            queues.push(library_texts::subscription());
        }
        mesh.bus().declare(&[put_aside::topic()], &queues).await?;
        mesh.0.consumers.lock().extend([inbox, control]);
        mesh.0.watched.add([WORKSPACES.1.to_owned()]);
        let (applied, changes) = mpsc::channel(64);
        let m = mesh.clone();
        let (view, watched) = (m.0.config.clone(), m.0.watched.clone());
        mesh.spawn(
            TaskKind::Background,
            config_watch::run(m, view, watched, applied),
        );
        let m = mesh.clone();
        mesh.spawn(TaskKind::Background, async move {
            m.0.runtime.run(&m, changes).await
        });
        mesh.spawn(TaskKind::Background, presence::run(mesh.clone()));
        Ok(mesh)
    }

    /// Hosts a processor: subscribes its handlers wherever config says. Returns once what can be
    /// subscribed now is; an exclusive processor whose store another process owns stands by.
    pub async fn host(&self, processor: Processor) -> Result<(), Error> {
        let types = processor.watches.iter().map(|kind| (*kind).to_owned());
        let rows = [
            format!("processor:{}", processor.id),
            "flow".to_owned(),
            COLLECTION.to_owned(),
        ];
        let flows = processor
            .has_flow_handlers()
            .then_some(rows)
            .into_iter()
            .flatten();
        self.0.watched.add(types.chain(flows));
        self.0.runtime.host(self, processor).await;
        Ok(())
    }

    /// The watched configuration.
    pub fn config(&self) -> &ConfigView {
        &self.0.config
    }

    /// What all processes say of themselves.
    pub fn presence(&self) -> &PresenceView {
        &self.0.presence
    }

    /// Cancelled when the process begins to stop: what only waits gives up, what is in progress may end.
    pub fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }

    /// Stops serving: takes no new work, waits for what is in progress, leaves the mesh. All waiting
    /// together ends after `patience`; leaving takes a few seconds more at most.
    pub async fn stop(&self, patience: Duration) {
        let end = Instant::now() + patience;
        self.stopping().cancel();
        self.0.runtime.detach_all(self, end).await;
        let _ = tokio::time::timeout_at(end, self.port().tasks().handlers_idle()).await;
        let consumers = std::mem::take(&mut *self.0.consumers.lock());
        let _ = tokio::time::timeout(LEAVE, async {
            presence::tell(self, "bye", || Some(Vec::new())).await;
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

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.0.tally
    }
}

/// Takes broadcasts: cancels and presence.
struct Control(Mesh);

impl Sink for Control {
    fn deliver(&self, mut delivery: Delivery) {
        let envelope = std::mem::take(&mut delivery.envelope);
        match envelope.headers.frame {
            Some(Frame::Cancel) => self.0.server().deliver(&envelope.headers),
            _ => presence::deliver(&self.0, &envelope),
        }
        delivery.ack();
    }
}
