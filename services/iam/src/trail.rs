//! What was refused here, once a second into the store; and once an hour what is too old out of it.

use std::sync::Arc;
use std::time::Duration;

use tg_clients::audit::AuditBuffer;
use tg_mesh::{LeasedStore, Mesh};
use tokio::time::Instant;

use crate::cached::CachedDirectory;
use crate::store::AuditBatch;

/// How long what was refused is in memory only.
const PAUSE: Duration = Duration::from_secs(1);
/// How often what is too old goes.
const FORGET: Duration = Duration::from_secs(3600);

/// Runs as long as the process, and writes down at its end what was refused since. The store is not held meanwhile: it must
/// be free to go.
pub(crate) async fn run(
    mesh: Mesh,
    store: Arc<LeasedStore<CachedDirectory>>,
    refusals: Arc<AuditBuffer>,
) {
    let source = uuid::Uuid::new_v4().to_string();
    let mut batch = AuditBatch {
        source: format!("iam-{source}"),
        ..AuditBatch::default()
    };
    let mut forget = Instant::now() + PAUSE;
    loop {
        let stopping = tokio::select! {
            () = tokio::time::sleep(PAUSE) => false,
            // What is refused while the process drains is told too.
            () = mesh.shutdown().cancelled() => true,
        };
        if let Some(directory) = store.opened() {
            write_down(&directory, &refusals, &mut batch).await;
            if !stopping && Instant::now() >= forget {
                forget = Instant::now() + FORGET;
                if let Err(error) = directory.forget().await {
                    tracing::warn!(%error, "the audit keeps what is too old for another while");
                }
            }
        }
        if stopping {
            return;
        }
    }
}

/// A batch that could not be kept is the first to be kept next time.
async fn write_down(directory: &CachedDirectory, refusals: &AuditBuffer, batch: &mut AuditBatch) {
    loop {
        if batch.entries.is_empty() {
            batch.entries = refusals.take();
            batch.sequence += 1;
        }
        if batch.entries.is_empty() {
            return;
        }
        if let Err(error) = directory.keep(batch).await {
            tracing::warn!(%error, "refusals wait to be written down");
            return;
        }
        batch.entries.clear();
    }
}
