//! Removes rows of what was dropped, little by little.

use std::sync::Arc;
use std::time::Duration;

use tg_mesh::{LeasedStore, Mesh};

use crate::error::RowsError;
use crate::store::RowStore;

/// How often dropped rows are looked for.
const EVERY: Duration = Duration::from_secs(5);

/// Runs until the process stops.
pub(crate) async fn run<S: RowStore>(mesh: Mesh, store: Arc<LeasedStore<S>>) {
    while !mesh.stopping().is_cancelled() {
        tokio::select! {
            () = mesh.stopping().cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        // A process that stands by must not touch the store: its owner purges.
        let Some(store) = store.opened() else {
            continue;
        };
        if let Err(error) = purge(&*store).await {
            tracing::warn!(%error, "dropped rows could not be removed");
        }
    }
}

async fn purge<S: RowStore>(store: &S) -> Result<(), RowsError> {
    while store.purge_some().await? {}
    Ok(())
}
