//! Reclaims what was deleted, and forgets what belonged to workspaces that are deleted while this process
//! has the store open.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tg_mesh::{Mesh, OwnedStore};
use tokio::sync::Notify;

use crate::store::Cores;

/// Longest pause between two looks.
const LOOK: Duration = Duration::from_secs(60);

/// Runs until the process stops.
pub(super) async fn run(mesh: Mesh, store: Arc<OwnedStore<Cores>>, wake: Arc<Notify>) {
    let mut changes = mesh.config().changes();
    let mut known = BTreeSet::new();
    loop {
        let now: BTreeSet<String> = mesh.config().workspaces().into_iter().collect();
        // A process that stands by must not open the store, nor hold it while nothing is done.
        if let Some(cores) = store.opened() {
            for workspace in gone(&known, &now) {
                if let Err(error) = cores.drop_workspace(&workspace).await {
                    tracing::warn!(workspace, %error, "knowledge cores could not be forgotten");
                }
            }
            reclaim(&mesh, &cores).await;
        }
        known = now;
        tokio::select! {
            () = wake.notified() => {}
            changed = changes.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(LOOK) => {}
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

/// What was there and is no more. A configuration without any workspace is a new one, not a deletion.
fn gone(before: &BTreeSet<String>, now: &BTreeSet<String>) -> Vec<String> {
    if now.is_empty() {
        return Vec::new();
    }
    before.difference(now).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_seen_and_is_gone_is_forgotten() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(gone(&set(&["a", "b"]), &set(&["b", "c"])), ["a"]);
        assert!(gone(&set(&["a"]), &set(&[])).is_empty());
    }
}
