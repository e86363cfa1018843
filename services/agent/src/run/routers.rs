//! What each workspace has configured for the router, read again when that changed.

use std::sync::Arc;

use tg_mesh::{Cx, Derived};

use super::tools::{pairs, recorded_pairs};
use crate::engine::exchange::Rows;
use crate::engine::router::Router;

/// Workspaces remembered; beyond it all are forgotten and read again.
const KEEP: usize = 1024;

/// Config types that it is made of.
pub(super) const KINDS: [&str; 2] = ["agent-pattern", "agent-task-type"];

/// See the module.
pub(super) struct Routers(Derived<Router>);

impl Default for Routers {
    fn default() -> Self {
        Self(Derived::of(KEEP))
    }
}

impl Routers {
    /// What the context's workspace has configured now.
    pub(super) fn of(&self, cx: &Cx) -> Arc<Router> {
        let workspace = cx.workspace();
        let rows = KINDS.map(|kind| cx.config().values(workspace, kind));
        if let Some(router) = self.0.get(workspace, &rows) {
            return router;
        }
        let router = Router::read(&pairs(&rows[0]), &pairs(&rows[1]));
        for fault in &router.faults {
            tracing::warn!(workspace, fault, "a row of the router was left out");
        }
        self.0.put(workspace, rows.into(), router)
    }
}

/// What was configured as a run went that is replayed.
pub(super) fn recorded(rows: &Rows) -> Router {
    let [patterns, task_types] = KINDS.map(|kind| recorded_pairs(rows, kind));
    Router::read(&patterns, &task_types)
}
