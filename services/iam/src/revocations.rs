//! Notifies everybody who remembers decisions that something was revoked. What was committed and not sent, because this
//! process or one before it ended in between, is sent by whoever serves next.

use std::sync::Arc;
use std::time::Duration;

use tg_mesh::{LeasedStore, Mesh};
use tokio::sync::Notify;

use crate::cached::CachedDirectory;
use crate::remote;

/// Pause while the store is not open yet, and after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Tells of a revocation until it worked, and notes that. A process that stops leaves it to the next. The store is not
/// held meanwhile: it must be free to go.
pub(crate) async fn tell(mesh: &Mesh, store: &LeasedStore<CachedDirectory>, revocation: i64) {
    remote::tell_revocation(mesh).await;
    if mesh.stopping().is_cancelled() {
        return;
    }
    // Who has the store now tells it again otherwise, which does no harm.
    if let Some(directory) = store.opened()
        && let Err(error) = directory.told(revocation).await
    {
        tracing::warn!(%error, "a revocation will be announced again");
    }
}

/// Runs as long as the process: whenever it has `opened` the store, tells what is left.
pub(crate) async fn run(mesh: Mesh, store: Arc<LeasedStore<CachedDirectory>>, opened: Arc<Notify>) {
    loop {
        tokio::select! {
            () = opened.notified() => {}
            () = mesh.stopping().cancelled() => return,
        }
        while !take_up(&mesh, &store).await {
            tokio::select! {
                () = tokio::time::sleep(RETRY_DELAY) => {}
                () = mesh.stopping().cancelled() => return,
            }
        }
    }
}

/// Tells what is left. `false` if that is not known yet.
async fn take_up(mesh: &Mesh, store: &LeasedStore<CachedDirectory>) -> bool {
    let Some(directory) = store.opened() else {
        return false;
    };
    let standing = directory.revocations().await;
    drop(directory);
    match standing {
        Ok(standing) if standing.are_owed() => {
            tracing::info!("a revocation was not announced before; it is now");
            tell(mesh, store, standing.made).await;
            true
        }
        Ok(_) => true,
        Err(_) => false,
    }
}
