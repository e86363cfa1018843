//! Which generation of its name a workspace is in: seen from configuration, and the end of those that were deleted. Their
//! users and keys do not come back with a restored workspace, so they go at once.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tg_clients::generations;
use tg_collections::{KnownConfig, WorkspaceStore, reaper};
use tg_mesh::{LeasedStore, Mesh};
use tg_schemas::{Error, ErrorCode, WorkspaceKey, WorkspaceTombstone};

use crate::cached::CachedDirectory;
use crate::engine;

/// Pause while the store is not this process's, and longest one between two looks.
const LOOK: Duration = Duration::from_secs(1);

#[async_trait]
impl WorkspaceStore for CachedDirectory {
    const AT_ONCE: bool = true;

    async fn workspaces(&self) -> Result<Vec<String>, Error> {
        Ok(self.settled())
    }

    async fn purge(&self, key: &WorkspaceKey, _: &WorkspaceTombstone) -> Result<(), Error> {
        self.about(key, engine::end).await
    }

    fn known_config(&self) -> &dyn KnownConfig {
        self.store()
    }
}

/// Notes the generations of workspaces as configuration shows them. Runs as long as the process.
pub(crate) async fn settle(mesh: Mesh, store: Arc<LeasedStore<CachedDirectory>>) {
    if generations::of_workspaces(&mesh).is_none() {
        return;
    }
    let mut changes = mesh.config().changes();
    loop {
        changes.borrow_and_update();
        // Not held while nothing is done: the store must be free to go.
        if let Some(directory) = store.opened() {
            for id in directory.unsettled() {
                let key = mesh.config().workspace_key(&id);
                // One that is not registered may be deleted, or not made yet.
                if mesh.config().has_workspace(&id)
                    && !mesh.config().has_ended(&key)
                    && let Err(error) = directory.about(&key, engine::settle).await
                {
                    tracing::warn!(%error, workspace = %id, "a generation will be recorded later");
                }
            }
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(LOOK) => {}
            () = mesh.stopping().cancelled() => return,
        }
    }
}

/// What a deletion that was cut short left of a workspace goes, before one of its name is made, enabled or changed.
///
/// # Errors
/// `conflict` where the configuration that says it was deleted is not the one that was known.
pub(crate) async fn clear_left(
    mesh: &Mesh,
    directory: &CachedDirectory,
    id: &str,
) -> Result<(), Error> {
    let told = generations::of_workspaces(mesh);
    let ended = |key: &WorkspaceKey| told.is_some_and(|config| config.has_ended(key));
    let Some(key) = directory.key(id).filter(ended) else {
        return Ok(());
    };
    if let Some(why) = reaper::refusal(mesh, directory).await? {
        let text = format!("workspace_record.id: was deleted before, but {why}");
        return Err(Error::new(ErrorCode::Conflict, text));
    }
    directory.about(&key, engine::end).await
}
