//! Keeps sessions for use by later calls. Bounded; the one not used for longest goes first.

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use moka::policy::EvictionPolicy;
use serde_json::{Map, Value};
use tg_mesh::Mesh;
use tg_provider_http::{Limits, Reach, client};
use tg_schemas::msg::ToolResponse;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};

use super::listing::Listing;
use super::process::{InUse, Process};
use super::row::{Place, Server};
use super::session::{self, Asked, Session};
use crate::error::ToolError;
use crate::options::Options;
use crate::programs::Programs;

/// Who waits for a place looks so often for what nobody uses any more.
const LOOK: Duration = Duration::from_millis(250);

/// A changed address or token is another session; workspaces never share one.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    workspace: String,
    place: Place,
}

/// All sessions of this process.
pub(crate) struct Servers {
    mesh: Mesh,
    /// Made when the first call needs it: most installations name no server.
    http: OnceCell<reqwest::Client>,
    sessions: Cache<Key, Arc<Session>>,
    /// Which addresses servers may have.
    reach: Reach,
    programs: Programs,
    /// Places of processes.
    processes: Arc<Semaphore>,
    idle: Duration,
}

impl Servers {
    /// No session yet.
    pub(crate) fn new(mesh: &Mesh, options: &Options) -> Self {
        let sessions = Cache::builder()
            .max_capacity(options.sessions)
            .time_to_idle(options.idle())
            .eviction_policy(EvictionPolicy::lru())
            // The cache may hold on to what it gave up; the process of a program is not to wait for that.
            .eviction_listener(|_, session: Arc<Session>, _| {
                if let Some(process) = session.process() {
                    process.retire();
                }
            })
            .build();
        Self {
            mesh: mesh.clone(),
            http: OnceCell::new(),
            sessions,
            reach: options.reach(),
            programs: options.mcp_servers.clone().unwrap_or_default(),
            processes: Arc::new(Semaphore::new(options.mcp_processes)),
            idle: options.idle(),
        }
    }

    /// Calls a tool. The key of the call is the same when it is made again.
    pub(crate) async fn call(
        &self,
        workspace: &str,
        (row, server): (&str, &Server),
        arguments: Map<String, Value>,
        asked: Asked<'_>,
    ) -> Result<ToolResponse, ToolError> {
        let (slot, session, _in_use) = self.session(workspace, (row, server)).await?;
        let result = session.call(&server.remote_name, arguments, asked).await;
        self.let_go(&slot, &session).await;
        result
    }

    /// The tools of a server.
    pub(crate) async fn list(
        &self,
        workspace: &str,
        (row, server): (&str, &Server),
    ) -> Result<Arc<Listing>, ToolError> {
        let (slot, session, _in_use) = self.session(workspace, (row, server)).await?;
        let listed = session.list().await;
        self.let_go(&slot, &session).await;
        listed
    }

    /// The session of a workspace with a server, which was begun to be used.
    async fn session(
        &self,
        workspace: &str,
        (row, server): (&str, &Server),
    ) -> Result<(Key, Arc<Session>, Option<InUse>), ToolError> {
        let slot = Key {
            workspace: workspace.to_owned(),
            place: server.place.clone(),
        };
        // Who asks at the same time waits for the session that the first one opens. One that ends just then is opened anew.
        for _ in 0..2 {
            let opening = async { self.open(workspace, (row, server)).await.map(Arc::new) };
            let opened = self.sessions.try_get_with_by_ref(&slot, opening).await;
            let session = opened.map_err(|error: Arc<ToolError>| ToolError::clone(&error))?;
            if session.is_closed() {
                self.sessions.invalidate(&slot).await;
            } else if let Some(in_use) = session.begin() {
                return Ok((slot, session, in_use));
            }
        }
        Err(ToolError::Unreachable)
    }

    async fn let_go(&self, slot: &Key, session: &Session) {
        if session.is_closed() {
            self.sessions.invalidate(slot).await;
        }
    }

    async fn open(
        &self,
        workspace: &str,
        (row, server): (&str, &Server),
    ) -> Result<Session, ToolError> {
        match &server.place {
            Place::At { url, token } => {
                let within = self.reach.check(url);
                within.map_err(|_| ToolError::denied(self.reach))?;
                let http = self.http().await?;
                Session::open(http, url, token.as_ref()).await
            }
            Place::Program(name) => {
                let program = self.programs.of(name, workspace);
                let program = program.ok_or_else(|| ToolError::Unlisted {
                    key: row.to_owned(),
                    name: name.clone(),
                })?;
                let place = self.place().await?;
                let started = Process::start(&self.mesh, (name, program), self.idle, place)?;
                Session::with_program(started).await
            }
        }
    }

    /// A place for another process. Where there is none, those that nobody uses are ended.
    async fn place(&self) -> Result<OwnedSemaphorePermit, ToolError> {
        if let Ok(place) = self.processes.clone().try_acquire_owned() {
            return Ok(place);
        }
        let making = async {
            loop {
                for (_, session) in &self.sessions {
                    if let Some(process) = session.process() {
                        process.retire_unused();
                    }
                }
                let waiting = self.processes.clone().acquire_owned();
                if let Ok(Ok(place)) = tokio::time::timeout(LOOK, waiting).await {
                    return place;
                }
            }
        };
        let made = tokio::time::timeout(session::OPEN, making).await;
        made.map_err(|_| ToolError::Busy)
    }

    /// One client for all servers. Reading the machine's certificates blocks.
    async fn http(&self) -> Result<reqwest::Client, ToolError> {
        let limits = Limits {
            connect: session::CONNECT,
            idle: 0,
            // A session may be silent for as long as it lives; each call has a deadline.
            silence: None,
            reach: self.reach,
            ..Limits::default()
        };
        let made = self.http.get_or_try_init(|| async {
            let making = tokio::task::spawn_blocking(move || client("https://", limits)).await;
            let client = making.ok().and_then(Result::ok);
            client.ok_or(ToolError::NoClient)
        });
        made.await.cloned()
    }
}

#[cfg(test)]
mod tests;
