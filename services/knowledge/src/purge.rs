//! Purges what deleted cores held, step by step.

use std::sync::Arc;

use tg_mesh::{LeasedStore, Mesh};
use tokio::sync::Notify;

use crate::options::LOOK;
use crate::store::{CoreStore, KnowledgeStore};

/// Runs until the process stops.
pub(crate) async fn run<S: KnowledgeStore>(
    mesh: Mesh,
    store: Arc<LeasedStore<S>>,
    wake: Arc<Notify>,
) {
    loop {
        // A process that stands by must not open the store, nor hold it while nothing is done.
        if let Some(cores) = store.opened() {
            purge(&mesh, &*cores).await;
        }
        tokio::select! {
            () = wake.notified() => {}
            () = tokio::time::sleep(LOOK) => {}
            () = mesh.stopping().cancelled() => return,
        }
    }
}

async fn purge(mesh: &Mesh, cores: &impl CoreStore) {
    while !mesh.stopping().is_cancelled() {
        match cores.purge_some().await {
            Ok(true) => tokio::task::yield_now().await,
            Ok(false) => return,
            Err(error) => {
                tracing::warn!(%error, "deleted knowledge cores could not be purged");
                return;
            }
        }
    }
}
