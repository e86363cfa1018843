//! Whether a workspace is open: registered, not disabled, and the one that somebody was let in to.

use tg_mesh::ConfigView;

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
            if !same || !self.config.is_open(&self.workspace) {
                return;
            }
            if changes.changed().await.is_err() {
                // Nothing is heard any more: the process ends.
                return std::future::pending().await;
            }
        }
    }
}
