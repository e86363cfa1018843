//! What servers of tools say that they have, of the workspaces whose rows name any. The tool service keeps it and hears of
//! changes; here it is known for a moment, so that the steps of many runs ask once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use moka::future::Cache;
use serde::Deserialize;
use tg_mesh::config_view::Rows;
use tg_mesh::{Cx, Deadline, Derived};
use tg_schemas::Error;
use tg_schemas::limits::SERVERS_KEPT;
use tg_schemas::msg::ToolRequest;
use tg_schemas::processors::agent_manager::MCP_TOOL;

use super::tools::pairs;
use crate::engine::toolset::ToolSet;
use crate::error::AgentError;

/// Asks the tool service which tools a server has.
const LIST: &str = "list-tools";
/// How long an answer is taken for true.
const FRESH: Duration = Duration::from_secs(1);
/// How long a server that could not be asked is not asked again.
const REST: Duration = Duration::from_secs(30);
/// How long its last answer stands in for it meanwhile.
const KNOWN: Duration = Duration::from_secs(3600);
/// Longest that a step waits for a server.
const ASKED: Duration = Duration::from_secs(10);

/// Servers are asked for each set of roles: a row may be for some only. Where users have tokens of their own, a server may tell
/// each something else.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    workspace: String,
    roles: String,
    /// Empty: it is all the same who asks.
    user: String,
    server: String,
}

/// See the module.
pub(super) struct Servers {
    /// Which servers the rows of a workspace name.
    named: Derived<BTreeSet<String>>,
    fresh: Cache<Key, Arc<str>>,
    known: Cache<Key, Arc<str>>,
    /// Of the same type as the others, though only the keys count: a cache of another type is 50 KB of code more.
    resting: Cache<Key, Arc<str>>,
}

impl Default for Servers {
    fn default() -> Self {
        let answers = |holds| {
            let bytes = |key: &Key, text: &Arc<str>| {
                let names = [&key.workspace, &key.roles, &key.user, &key.server];
                let bytes = names.iter().map(|name| name.len()).sum::<usize>() + text.len();
                u32::try_from(bytes).unwrap_or(u32::MAX)
            };
            Cache::builder()
                .max_capacity(SERVERS_KEPT)
                .weigher(bytes)
                .time_to_live(holds)
                .build()
        };
        Self {
            named: Derived::default(),
            fresh: answers(FRESH),
            known: answers(KNOWN),
            resting: Cache::builder()
                .max_capacity(1024)
                .time_to_live(REST)
                .build(),
        }
    }
}

impl Servers {
    /// The tools of the servers that the context's workspace names, as JSON by the servers' keys.
    pub(super) async fn of(&self, cx: &Cx) -> Arc<Rows> {
        let named = self.named(cx);
        if named.is_empty() {
            return Arc::default();
        }
        let listing = named.iter().map(async |server| {
            let key = Key {
                workspace: cx.workspace_key().to_string(),
                roles: cx.headers.roles.clone().unwrap_or_default().to_string(),
                user: user_of(cx, server),
                server: server.clone(),
            };
            Some((server.clone(), self.list(cx, key).await?))
        });
        Arc::new(join_all(listing).await.into_iter().flatten().collect())
    }

    fn named(&self, cx: &Cx) -> Arc<BTreeSet<String>> {
        let rows = ["tool-native", "tool"].map(|kind| cx.config().values(cx.workspace(), kind));
        if let Some(named) = self.named.get(cx.workspace(), &rows) {
            return named;
        }
        let pairs: Vec<_> = rows.iter().flat_map(|rows| pairs(rows)).collect();
        let named = ToolSet::servers(&pairs);
        self.named.put(cx.workspace(), rows.into(), named)
    }

    /// What a server has; while it cannot be asked, what it had.
    async fn list(&self, cx: &Cx, key: Key) -> Option<Arc<str>> {
        if self.resting.get(&key).await.is_none() {
            let asked = ask(cx, &key.server);
            match self.fresh.try_get_with_by_ref(&key, asked).await {
                Ok(listing) => {
                    self.known.insert(key, listing.clone()).await;
                    return Some(listing);
                }
                Err(error) => {
                    let (workspace, server) = (cx.workspace(), &key.server);
                    tracing::warn!(workspace, server, %error, "a server's tools are not known");
                    self.resting.insert(key.clone(), Arc::from("")).await;
                }
            }
        }
        self.known.get(&key).await
    }
}

/// The user who asks, where a server is told which one that is.
fn user_of(cx: &Cx, server: &str) -> String {
    let row = cx.config().get(cx.workspace(), "mcp", server);
    let user = cx.headers.user_id.as_ref();
    let user = user.filter(|_| row.is_some_and(|row| is_of_users(&row)));
    user.cloned().unwrap_or_default()
}

/// Whether the row of a server says that users have tokens of their own.
fn is_of_users(row: &str) -> bool {
    #[derive(Deserialize)]
    struct Row {
        #[serde(default, rename = "user-tokens")]
        of_users: bool,
    }
    serde_json::from_slice(row.as_bytes()).is_ok_and(|row: Row| row.of_users)
}

async fn ask(cx: &Cx, server: &str) -> Result<Arc<str>, Error> {
    let mut cx = cx.clone();
    cx.deadline = cx.deadline.min(Deadline::after(ASKED));
    let request = ToolRequest {
        operation: LIST.to_owned(),
        server: server.to_owned(),
        ..ToolRequest::default()
    };
    let answer = cx.ask_with(MCP_TOOL, &request, cx.ask_options())?;
    let tools = answer.last().await?.tools;
    let listing = serde_json::to_string(&tools).map_err(AgentError::from)?;
    Ok(listing.into())
}
