//! Forgets what was kept for workspaces that are no more.

use std::sync::Arc;

use tg_mesh::{Mesh, OwnedStore};
use tg_storage::StorageError;

use crate::store::Ledger;

/// Follows the configuration until the process stops.
pub(super) async fn run(mesh: Mesh, store: Arc<OwnedStore<Ledger>>) {
    let mut changes = mesh.config().changes();
    let mut known = Vec::new();
    loop {
        tokio::select! {
            changed = changes.changed() => if changed.is_err() {
                return;
            },
            () = mesh.shutdown().cancelled() => return,
        }
        let now = mesh.config().workspaces();
        // Without any workspace the configuration was not read yet.
        if now == known || now.is_empty() {
            continue;
        }
        match forget(&mesh, &store, &now).await {
            Ok(true) => known = now,
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "replies of deleted workspaces are not forgotten yet")
            }
        }
    }
}

/// `false` when it has to be looked at again.
async fn forget(
    mesh: &Mesh,
    store: &OwnedStore<Ledger>,
    now: &[String],
) -> Result<bool, StorageError> {
    let Some(ledger) = store.opened() else {
        return Ok(false);
    };
    for workspace in ledger.workspaces().await? {
        if now.contains(&workspace) {
            continue;
        }
        while ledger.forget_some(workspace.clone()).await? {
            if mesh.shutdown().is_cancelled() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
