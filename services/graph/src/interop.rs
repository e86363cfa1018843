//! Among foreign processors, drops the triples of a collection whose row goes while this process has the store open:
//! there nobody asks for it, and a row that goes is all that is ever said. Where none of a workspace's is left it is the
//! configuration that was lost, and nothing is dropped. Elsewhere a collection is dropped when its owner asks, and a workspace by its tombstone
//! (`tg_collections::reaper`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tg_clients::neighbours::Neighbours;
use tg_collections::{CollectionKey, CollectionStore};
use tg_mesh::{LeasedStore, Mesh};
use tg_schemas::WorkspaceKey;

/// Config type that lists collections.
pub(crate) const COLLECTIONS: &str = "collection";

/// Collections by name and generation, of the workspaces that there are.
type Known = BTreeMap<WorkspaceKey, BTreeSet<(String, i64)>>;

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
                    workspace = workspace.name(),
                    collections = collections.len(),
                    "no collection of a workspace is left: their triples are kept"
                );
                continue;
            }
            for (collection, generation) in collections {
                let key = CollectionKey::new(workspace.as_str(), &collection);
                drop_triples(&owned, &key.in_generation(generation)).await;
            }
        }
        known = now;
    }
}

/// What there is, each under what its triples are kept under: a row that goes takes its generation with it.
fn look(mesh: &Mesh) -> Known {
    let config = mesh.config();
    let workspaces = config.workspaces().into_iter();
    workspaces
        .map(|workspace| {
            let rows = config.values(&workspace, COLLECTIONS);
            let generation = |name: &String| config.collection_generation(&workspace, name);
            let names = rows.keys().map(|name| (name.clone(), generation(name)));
            (config.workspace_key(&workspace), names.collect())
        })
        .collect()
}

/// Collections that were there and are no more, by the workspaces of theirs that are.
fn gone(before: &Known, now: &Known) -> Vec<(WorkspaceKey, Vec<(String, i64)>)> {
    let left = before.iter().filter_map(|(workspace, known)| {
        let gone: Vec<_> = known.difference(now.get(workspace)?).cloned().collect();
        (!gone.is_empty()).then(|| (workspace.clone(), gone))
    });
    left.collect()
}

async fn drop_triples<S: CollectionStore>(owned: &LeasedStore<S>, key: &CollectionKey) {
    // A process that stands by must not open the store: its owner drops.
    let Some(engine) = owned.opened() else {
        return;
    };
    let (workspace, collection) = (key.workspace(), key.collection());
    match engine.drop_collection(key).await {
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
        let names = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), 0)).collect();
        of.iter()
            .map(|(ws, all)| (WorkspaceKey::new(ws, 0), names(all)))
            .collect()
    }

    #[test]
    fn only_collections_of_workspaces_that_are_there_are_forgotten() {
        let before = known(&[("a", &["x", "y"]), ("b", &["x"])]);
        let after = known(&[("a", &["y", "z"])]);
        let x = (WorkspaceKey::new("a", 0), vec![("x".to_owned(), 0)]);
        assert_eq!(gone(&before, &after), [x]);
        let emptied = known(&[("a", &[]), ("b", &["x"])]);
        assert_eq!(gone(&before, &emptied)[0].1.len(), 2);
        assert_eq!(gone(&before, &before), []);
        assert_eq!(gone(&before, &Known::new()), []);
        assert_eq!(gone(&Known::new(), &before), []);
    }

    #[test]
    fn a_name_that_is_another_collection_or_workspace_now_is_not_the_one_that_was() {
        let of = |workspace: i64, collection: i64| {
            let names = [("x".to_owned(), collection), ("y".to_owned(), 0)];
            Known::from([(WorkspaceKey::new("a", workspace), names.into())])
        };
        let x = |generation| vec![("x".to_owned(), generation)];
        let workspace = WorkspaceKey::new("a", 7);
        assert_eq!(gone(&of(7, 1), &of(7, 2)), [(workspace, x(1))]);
        // Its data goes with its own tombstone.
        assert_eq!(gone(&of(7, 1), &of(8, 1)), []);
    }
}
