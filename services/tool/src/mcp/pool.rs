//! Keeps sessions for use by later calls. Bounded; the one not used for longest goes first.

use std::sync::Arc;

use moka::future::Cache;
use moka::policy::EvictionPolicy;
use serde_json::{Map, Value};
use tg_provider_http::{Limits, Secret, client};
use tg_schemas::msg::ToolResponse;
use tokio::sync::OnceCell;

use super::row::Server;
use super::session::{self, Session};
use crate::error::ToolError;
use crate::options::Options;

/// A changed address or token is another session; workspaces never share one.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    workspace: String,
    url: String,
    token: Option<Secret>,
}

/// All sessions of this process.
pub(crate) struct Servers {
    /// Made when the first call needs it: most installations name no server.
    http: OnceCell<reqwest::Client>,
    sessions: Cache<Key, Arc<Session>>,
}

impl Servers {
    /// No session yet.
    pub(crate) fn new(options: &Options) -> Self {
        let sessions = Cache::builder()
            .max_capacity(options.sessions)
            .time_to_idle(options.idle())
            .eviction_policy(EvictionPolicy::lru())
            .build();
        Self {
            http: OnceCell::new(),
            sessions,
        }
    }

    /// Calls a tool. `key` names the call; it is the same when the call is made again.
    pub(crate) async fn call(
        &self,
        workspace: &str,
        server: &Server,
        arguments: Map<String, Value>,
        key: &str,
    ) -> Result<ToolResponse, ToolError> {
        let slot = Key {
            workspace: workspace.to_owned(),
            url: server.url.clone(),
            token: server.token.clone(),
        };
        // Who asks at the same time waits for the session that the first one opens.
        let opening = async {
            let http = self.http().await?;
            Session::open(http, server).await.map(Arc::new)
        };
        let opened = self.sessions.try_get_with_by_ref(&slot, opening).await;
        let session = opened.map_err(|error: Arc<ToolError>| ToolError::clone(&error))?;
        let result = session.call(&server.remote_name, arguments, key).await;
        if session.is_closed() {
            self.sessions.invalidate(&slot).await;
        }
        result
    }

    /// One client for all servers. Reading the machine's certificates blocks.
    async fn http(&self) -> Result<reqwest::Client, ToolError> {
        let limits = Limits {
            connect: session::CONNECT,
            idle: 0,
            // A session may be silent for as long as it lives; each call has a deadline.
            silence: None,
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
