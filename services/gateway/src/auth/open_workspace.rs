//! Whether a workspace is open: registered, not disabled, and the one that somebody was let in to.

use serde_json::Value;
use tg_mesh::ConfigView;
use tg_schemas::workspace_key::{REGISTERED, REGISTRY};

/// Whether a workspace takes requests.
pub(crate) fn is_open(config: &ConfigView, workspace: &str) -> bool {
    let Some(row) = config.get(REGISTRY, REGISTERED, workspace) else {
        return false;
    };
    let disabled = serde_json::from_slice::<Value>(row.as_bytes())
        .is_ok_and(|value| value.get("enabled") == Some(&Value::Bool(false)));
    !disabled
}

/// A workspace in the generation of its name that somebody was let in to.
pub(super) struct OpenWorkspace {
    config: ConfigView,
    workspace: String,
    generation: i64,
}

impl OpenWorkspace {
    /// As it is now.
    pub(super) fn new(config: &ConfigView, workspace: &str) -> Self {
        Self {
            config: config.clone(),
            workspace: workspace.to_owned(),
            generation: config.generation(workspace),
        }
    }

    /// Waits until it is disabled or deleted, whatever has its name then.
    pub(super) async fn closed(self) {
        let mut changes = self.config.changes();
        loop {
            changes.borrow_and_update();
            let same = self.config.generation(&self.workspace) == self.generation;
            if !same || !is_open(&self.config, &self.workspace) {
                return;
            }
            if changes.changed().await.is_err() {
                // Nothing is heard any more: the process ends.
                return std::future::pending().await;
            }
        }
    }
}
