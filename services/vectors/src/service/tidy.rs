//! Forgets what belonged to workspaces that are deleted while this process has the stores open.
//! Collections are dropped when their owner asks for it, not from here.

use std::collections::BTreeSet;
use std::sync::Arc;

use tg_mesh::{Mesh, OwnedStore};

use crate::engine::Engine;
use crate::keywords::Keywords;

/// Follows the configuration until the process stops.
pub(super) async fn run(
    mesh: Mesh,
    vectors: Arc<OwnedStore<Engine>>,
    words: Arc<OwnedStore<Keywords>>,
) {
    let mut changes = mesh.config().changes();
    let mut known = BTreeSet::new();
    while changes.changed().await.is_ok() {
        let now: BTreeSet<String> = mesh.config().workspaces().into_iter().collect();
        for workspace in gone(&known, &now) {
            // A process that stands by must not open a store: its owner forgets.
            if let Some(engine) = vectors.opened()
                && let Err(error) = engine.drop_workspace(&workspace).await
            {
                tracing::warn!(workspace, %error, "vectors could not be forgotten");
            }
            if let Some(index) = words.opened()
                && let Err(error) = index.drop_workspace(&workspace).await
            {
                tracing::warn!(workspace, %error, "keywords could not be forgotten");
            }
        }
        known = now;
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
