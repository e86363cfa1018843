//! What all endpoints share.

use std::sync::Arc;
use std::time::Duration;

use tg_mesh::Mesh;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::Auth;
use crate::budget::Budget;
use crate::detached::Detached;
use crate::flows::Flows;
use crate::inflight::InFlight;
use crate::options::GatewayOptions;
use crate::strangers::Strangers;

/// The gateway's parts.
pub(crate) struct App {
    pub(crate) mesh: Mesh,
    pub(crate) options: GatewayOptions,
    pub(crate) auth: Arc<Auth>,
    pub(crate) flows: Arc<Flows>,
    pub(crate) in_flight: InFlight,
    /// Sockets whose caller is not known yet.
    pub(crate) strangers: Strangers,
    /// What is being read at the moment.
    pub(crate) budget: Budget,
    /// Work that goes on without its caller.
    pub(crate) detached: Detached,
    /// Cancelled when the endpoints close.
    pub(crate) closing: CancellationToken,
    /// Cancelled when the drain time is over.
    pub(crate) cut: CancellationToken,
    /// Open connections, sockets not among them.
    pub(crate) connections: TaskTracker,
    /// Open sockets.
    pub(crate) sockets: TaskTracker,
    sockets_left: Arc<Semaphore>,
}

/// As handlers hold it.
pub(crate) type Shared = Arc<App>;

impl App {
    /// Puts the parts together.
    pub(crate) fn new(mesh: Mesh, options: GatewayOptions) -> Self {
        let (parsing, receiving) = options.reading();
        Self {
            auth: Arc::new(Auth::new(mesh.clone(), &options)),
            flows: Arc::new(Flows::new(mesh.config().clone())),
            in_flight: InFlight::new(options.limits.requests_per_workspace),
            strangers: Strangers::new(
                options.limits.strangers,
                options.limits.strangers_per_address,
            ),
            budget: Budget::new(parsing, receiving, options.auth_mode.into()),
            detached: Detached::new(options.limits.detached_per_user),
            closing: mesh.shutdown().child_token(),
            cut: CancellationToken::new(),
            connections: TaskTracker::new(),
            sockets: TaskTracker::new(),
            sockets_left: Arc::new(Semaphore::new(options.limits.sockets)),
            mesh,
            options,
        }
    }

    /// Room for one more socket of a caller who is known.
    pub(crate) fn socket_room(&self) -> Option<OwnedSemaphorePermit> {
        self.sockets_left.clone().try_acquire_owned().ok()
    }

    /// Waits, at most the drain time, until every socket is closed.
    pub(crate) async fn sockets_closed(&self) {
        self.sockets.close();
        let _ = tokio::time::timeout(self.drain_bound(), self.sockets.wait()).await;
    }

    /// What is left of a socket after the drain time needs a moment to say goodbye.
    pub(crate) fn drain_bound(&self) -> Duration {
        self.options.drain + Duration::from_secs(1)
    }
}
