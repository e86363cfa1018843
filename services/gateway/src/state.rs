//! What all endpoints share.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tg_mesh::Mesh;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::{Auth, Identity};
use crate::budget::Budget;
use crate::calls::Calls;
use crate::certificate::Certificate;
use crate::codes::Codes;
use crate::detached::Detached;
use crate::error::RequestError;
use crate::flows::Flows;
use crate::inflight::{InFlight, Permit};
use crate::judging::JudgeRoom;
use crate::kept::Kept;
use crate::levels::Levels;
use crate::offers::Asked;
use crate::options::{AuthMode, GatewayOptions};
use crate::pace::Pace;
use crate::receipts::Receipts;
use crate::sending::Sending;
use crate::strangers::Strangers;
use crate::trail::Trail;
use crate::turns::Turns;

/// The gateway's parts.
pub(crate) struct App {
    pub(crate) mesh: Mesh,
    pub(crate) options: GatewayOptions,
    /// What connections are made secure with; `None`: they are not.
    pub(crate) certificate: Option<Arc<Certificate>>,
    pub(crate) auth: Arc<Auth>,
    /// What was decided.
    pub(crate) trail: Arc<Trail>,
    pub(crate) flows: Arc<Flows>,
    pub(crate) in_flight: InFlight,
    /// How many requests a second there may be of whom.
    pub(crate) pace: Pace,
    /// Sockets whose caller is not known yet.
    pub(crate) strangers: Strangers,
    /// What is being read at the moment.
    pub(crate) budget: Budget,
    /// What waits for clients to read it.
    pub(crate) sending: Sending,
    /// At writing long answers.
    pub(crate) turns: Turns,
    /// What imports wait to be told by stores.
    pub(crate) receipts: Receipts,
    /// What live exports ask stores within.
    pub(crate) judges: JudgeRoom,
    /// Work that goes on without its caller.
    pub(crate) detached: Detached,
    /// What such work sent, for whoever joins it again.
    pub(crate) kept: Kept,
    /// Calls of tools that their callers may cancel.
    pub(crate) calls: Calls,
    /// Codes of users who signed in for a client of `/mcp`.
    pub(crate) codes: Codes,
    /// What clients of `/mcp` were asked.
    pub(crate) asked: Asked,
    /// What they want to hear of.
    pub(crate) levels: Levels,
    /// Cancelled when the endpoints close.
    pub(crate) closing: CancellationToken,
    /// Cancelled when the drain time is over.
    pub(crate) cut: CancellationToken,
    /// Open connections, sockets not among them.
    pub(crate) connections: TaskTracker,
    /// Open sockets.
    pub(crate) sockets: TaskTracker,
    sockets_left: Arc<Semaphore>,
    sockets_of_one: InFlight,
}

/// A place among the sockets of those who are known; free again when dropped.
#[derive(Debug)]
pub(crate) struct SocketRoom {
    _all: OwnedSemaphorePermit,
    _own: Permit,
}

/// As handlers hold it.
pub(crate) type Shared = Arc<App>;

impl App {
    /// Puts the parts together.
    pub(crate) fn new(
        mesh: Mesh,
        options: GatewayOptions,
        certificate: Option<Arc<Certificate>>,
    ) -> Self {
        Self {
            auth: Arc::new(Auth::new(mesh.clone(), &options)),
            trail: Arc::new(Trail::new(&mesh, options.auth_mode == AuthMode::None)),
            flows: Arc::new(Flows::new(mesh.config().clone())),
            in_flight: InFlight::new(options.settings.requests_per_workspace),
            pace: Pace::new(&options.settings),
            strangers: Strangers::new(
                options.settings.strangers,
                options.settings.strangers_per_address,
            ),
            budget: Budget::new(
                options.settings.parsing_mb << 20,
                options.settings.receiving_mb << 20,
                options.auth_mode.into(),
            ),
            sending: Sending::new(
                options.settings.sending_mb << 20,
                options.settings.connections,
                options.auth_mode.into(),
            ),
            turns: Turns::default(),
            receipts: Receipts::new(&options.settings),
            judges: JudgeRoom::default(),
            detached: Detached::new(options.settings.detached_per_user),
            kept: Kept::new(),
            calls: Calls::default(),
            codes: Codes::default(),
            asked: Asked::default(),
            levels: Levels::default(),
            closing: mesh.shutdown().child_token(),
            cut: CancellationToken::new(),
            connections: TaskTracker::new(),
            sockets: TaskTracker::new(),
            sockets_left: Arc::new(Semaphore::new(options.settings.sockets)),
            sockets_of_one: InFlight::new(options.settings.sockets_per_user),
            mesh,
            options,
            certificate,
        }
    }

    /// Room for one more socket of a caller who is known: of all there may be, and of their own. Without access control
    /// all callers are one, and their addresses tell them apart.
    pub(crate) fn socket_room(
        &self,
        identity: &Identity,
        address: Option<IpAddr>,
    ) -> Result<SocketRoom, RequestError> {
        let own = match address.filter(|_| self.auth.open()) {
            Some(address) => address.to_canonical().to_string(),
            None => identity.id.to_string(),
        };
        let _own = self.sockets_of_one.enter(own);
        let _own = _own.ok_or(RequestError::NoRoom("of this caller"))?;
        let all = self.sockets_left.clone().try_acquire_owned();
        let _all = all.map_err(|_| RequestError::NoRoom("in total"))?;
        Ok(SocketRoom { _all, _own })
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
