//! Reclaims what was deleted.

use std::sync::Arc;
use std::time::Duration;

use tg_mesh::{Mesh, OwnedStore};
use tokio::sync::Notify;

use crate::store::Cores;

/// Longest pause between two looks.
const LOOK: Duration = Duration::from_secs(60);

/// Runs until the process stops.
pub(super) async fn run(mesh: Mesh, store: Arc<OwnedStore<Cores>>, wake: Arc<Notify>) {
    loop {
        // A process that stands by must not open the store, nor hold it while nothing is done.
        if let Some(cores) = store.opened() {
            reclaim(&mesh, &cores).await;
        }
        tokio::select! {
            () = wake.notified() => {}
            () = tokio::time::sleep(LOOK) => {}
            () = mesh.stopping().cancelled() => return,
        }
    }
}

async fn reclaim(mesh: &Mesh, cores: &Cores) {
    while !mesh.stopping().is_cancelled() {
        match cores.reclaim().await {
            Ok(true) => tokio::task::yield_now().await,
            Ok(false) => return,
            Err(error) => {
                tracing::warn!(%error, "deleted knowledge cores could not be reclaimed");
                return;
            }
        }
    }
}
