//! Among foreign processors, drops the triples of a collection whose row goes while this process has the store open:
//! there nobody asks for it, and a row that goes is all that is ever said. Where none of a workspace's is left it is the
//! configuration that was lost, and nothing is dropped. Elsewhere a collection is dropped when its owner asks, and a workspace by its tombstone
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
        for (workspace, collections) in gone(&known, &now) {
            if now.get(&workspace).is_none_or(BTreeSet::is_empty) {
                tracing::warn!(
                    workspace,
                    collections = collections.len(),
                    "no collection of a workspace is left: their triples are kept"
                );
                continue;
            }
            for collection in collections {
                drop_triples(&owned, &workspace, &collection).await;
            }
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

/// Collections that were there and are no more, by the workspaces of theirs that are.
fn gone(before: &Known, now: &Known) -> Vec<(String, Vec<String>)> {
    let left = before.iter().filter_map(|(workspace, known)| {
        let gone: Vec<String> = known.difference(now.get(workspace)?).cloned().collect();
        (!gone.is_empty()).then(|| (workspace.clone(), gone))
    });
    left.collect()
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
        let x = ("a".to_owned(), vec!["x".to_owned()]);
        assert_eq!(gone(&before, &after), [x]);
        let emptied = known(&[("a", &[]), ("b", &["x"])]);
        assert_eq!(gone(&before, &emptied)[0].1, ["x", "y"]);
        assert_eq!(gone(&before, &before), []);
        assert_eq!(gone(&before, &Known::new()), []);
        assert_eq!(gone(&Known::new(), &before), []);
    }
}
