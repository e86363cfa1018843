//! Keeps sessions for use by later calls. Bounded; the one not used for longest goes first.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tg_schemas::msg::ToolResponse;
use tg_schemas::{Error, ErrorCode};
use tokio::sync::OnceCell;

use super::row::{Server, Token};
use super::session::{self, Session};

/// Sessions kept.
const KEEP: usize = 64;
/// A session that was not used for this long is opened anew.
const IDLE: Duration = Duration::from_secs(300);

/// A changed address or token is another session; workspaces never share one.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    workspace: String,
    url: String,
    token: Option<Token>,
}

struct Slot {
    session: Arc<OnceCell<Session>>,
    used: Instant,
}

/// All sessions of this process.
pub(crate) struct Servers {
    http: reqwest::Client,
    slots: Mutex<HashMap<Key, Slot>>,
}

impl Servers {
    pub(crate) fn new() -> Result<Self, Error> {
        // Fails only if another part of the process was first, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .connect_timeout(session::CONNECT)
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(0)
            .build()
            .map_err(|_| Error::new(ErrorCode::Internal, "no HTTP client"))?;
        Ok(Self {
            http,
            slots: Mutex::default(),
        })
    }

    /// Calls a tool. `key` names the call; it is the same when the call is made again.
    pub(crate) async fn call(
        &self,
        workspace: &str,
        server: &Server,
        arguments: Map<String, Value>,
        key: &str,
    ) -> Result<ToolResponse, Error> {
        let slot = Key {
            workspace: workspace.to_owned(),
            url: server.url.clone(),
            token: server.token.clone(),
        };
        let cell = self.slot(&slot);
        let opened = cell
            .get_or_try_init(|| Session::open(self.http.clone(), server))
            .await;
        let result = match opened {
            Ok(session) => session.call(&server.remote_name, arguments, key).await,
            Err(error) => Err(error),
        };
        if cell.get().is_none_or(Session::is_closed) {
            self.forget(&slot, &cell);
        }
        result
    }

    fn slot(&self, key: &Key) -> Arc<OnceCell<Session>> {
        let mut slots = self.slots.lock();
        let now = Instant::now();
        slots.retain(|_, slot| now - slot.used < IDLE);
        if slots.len() >= KEEP
            && !slots.contains_key(key)
            && let Some(oldest) = slots.iter().min_by_key(|(_, slot)| slot.used)
        {
            let oldest = oldest.0.clone();
            slots.remove(&oldest);
        }
        let slot = slots.entry(key.clone()).or_insert_with(|| Slot {
            session: Arc::default(),
            used: now,
        });
        slot.used = now;
        slot.session.clone()
    }

    fn forget(&self, key: &Key, cell: &Arc<OnceCell<Session>>) {
        let mut slots = self.slots.lock();
        if slots
            .get(key)
            .is_some_and(|slot| Arc::ptr_eq(&slot.session, cell))
        {
            slots.remove(key);
        }
    }
}

#[cfg(test)]
mod tests;
