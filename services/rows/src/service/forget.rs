//! Removes rows of what was dropped, little by little.

use std::sync::Arc;
use std::time::Duration;

use tg_mesh::{Mesh, OwnedStore};

use crate::store::Store;

/// How often dropped rows are looked for.
const EVERY: Duration = Duration::from_secs(5);

/// Runs until the process stops.
pub(super) async fn tidy(mesh: Mesh, store: Arc<OwnedStore<Store>>) {
    while !mesh.stopping().is_cancelled() {
        tokio::select! {
            () = mesh.stopping().cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        // A process that stands by must not touch the store: its owner forgets.
        let Some(store) = store.opened() else {
            continue;
        };
        if let Err(error) = reap(&store).await {
            tracing::warn!(%error, "dropped rows could not be removed");
        }
    }
}

async fn reap(store: &Store) -> Result<(), tg_storage::StorageError> {
    while store.reap().await? {}
    Ok(())
}
