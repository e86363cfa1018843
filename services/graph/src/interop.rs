//! Among foreign processors, drops the triples of collections whose rows go while this process has the store open:
//! there nobody asks for it. Elsewhere a collection is dropped when its owner asks, and a workspace by its tombstone
//! (`tg_collections::reaper`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tg_clients::neighbours::Neighbours;
use tg_collections::{CollectionKey, CollectionStore};
use tg_mesh::{LeasedStore, Mesh};

/// Config type that lists collections.
pub(crate) const COLLECTIONS: &str = "collection";

type Known = BTreeMap<String, BTreeSet<String>>;

/// Follows the configuration until the process stops.
pub(crate) async fn run<S: CollectionStore>(mesh: Mesh, owned: Arc<LeasedStore<S>>) {
    if Neighbours::of(&mesh).ask_to_drop() {
        return;
    }
    let mut changes = mesh.config().changes();
    let mut known = Known::new();
    while changes.changed().await.is_ok() {
        let now = look(&mesh);
        for (workspace, collection) in gone(&known, &now) {
            drop_triples(&owned, &workspace, &collection).await;
        }
        known = now;
    }
}

fn look(mesh: &Mesh) -> Known {
    let config = mesh.config();
    let workspaces = config.workspaces().into_iter();
    workspaces
        .map(|workspace| {
            let rows = config.values(&workspace, COLLECTIONS);
            (workspace, rows.keys().cloned().collect())
        })
        .collect()
}

/// Collections that were there and are no more, of workspaces that are.
fn gone(before: &Known, now: &Known) -> Vec<(String, String)> {
    let left = before
        .iter()
        .filter_map(|(workspace, known)| Some((workspace, known, now.get(workspace)?)));
    left.flat_map(|(workspace, known, left)| {
        known
            .difference(left)
            .map(|name| (workspace.clone(), name.clone()))
    })
    .collect()
}

async fn drop_triples<S: CollectionStore>(
    owned: &LeasedStore<S>,
    workspace: &str,
    collection: &str,
) {
    // A process that stands by must not open the store: its owner drops.
    let Some(engine) = owned.opened() else {
        return;
    };
    let key = CollectionKey::new(workspace, collection);
    match engine.drop_collection(&key).await {
        Ok(_) => tracing::info!(
            workspace,
            collection,
            "the triples of a collection were dropped"
        ),
        Err(error) => {
            tracing::warn!(workspace, collection, %error, "the triples of a collection could not be dropped");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(of: &[(&str, &[&str])]) -> Known {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        of.iter()
            .map(|(ws, all)| ((*ws).to_owned(), names(all)))
            .collect()
    }

    #[test]
    fn only_collections_of_workspaces_that_are_there_are_forgotten() {
        let before = known(&[("a", &["x", "y"]), ("b", &["x"])]);
        let after = known(&[("a", &["y", "z"])]);
        assert_eq!(gone(&before, &after), [("a".to_owned(), "x".to_owned())]);
        assert_eq!(gone(&before, &before), []);
        assert_eq!(gone(&before, &Known::new()), []);
        assert_eq!(gone(&Known::new(), &before), []);
    }
}
