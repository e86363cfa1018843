//! What a process sees of the mesh: a peer on the bus, the watched configuration, and what all processes say of
//! themselves. Hosting is the business of [`crate::Host`].

use std::ops::Deref;
use std::sync::Arc;

use tg_rpc::Peer;
use tokio_util::sync::CancellationToken;

use crate::config_source::ConfigSource;
use crate::config_view::ConfigView;
use crate::middleware::Middleware;
use crate::presence::PresenceView;

/// A process's view of the mesh. Cheap to clone.
#[derive(Clone)]
pub struct Mesh(Arc<Inner>);

struct Inner {
    peer: Peer,
    stopping: CancellationToken,
    config: ConfigView,
    config_source: Arc<dyn ConfigSource>,
    presence: PresenceView,
    middleware: Option<Arc<dyn Middleware>>,
}

/// A mesh asks, answers and writes records as the peer that it is.
impl Deref for Mesh {
    type Target = Peer;

    fn deref(&self) -> &Peer {
        &self.0.peer
    }
}

impl Mesh {
    pub(crate) fn new(
        peer: Peer,
        config_source: Arc<dyn ConfigSource>,
        middleware: Option<Arc<dyn Middleware>>,
    ) -> Self {
        Self(Arc::new(Inner {
            presence: PresenceView::new(peer.inbox().into()),
            peer,
            stopping: CancellationToken::new(),
            config: ConfigView::default(),
            config_source,
            middleware,
        }))
    }

    /// The watched configuration.
    pub fn config(&self) -> &ConfigView {
        &self.0.config
    }

    pub(crate) fn config_source(&self) -> &dyn ConfigSource {
        &*self.0.config_source
    }

    /// What all processes say of themselves.
    pub fn presence(&self) -> &PresenceView {
        &self.0.presence
    }

    /// Cancelled when the process begins to stop: what only waits gives up, what is in progress may end.
    pub fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }

    pub(crate) fn middleware(&self) -> Option<&dyn Middleware> {
        self.0.middleware.as_deref()
    }
}
