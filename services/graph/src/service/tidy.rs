//! Forgets the triples of workspaces that are deleted while this process has the store open. A collection is
//! dropped when its owner asks for it; only among foreign processors, which never ask, does its row's going
//! mean that. What was never registered as a collection stays until its workspace goes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tg_mesh::{Mesh, Mode, OwnedStore};

use crate::{DatasetKey, Engine};

/// Config type that lists collections.
pub(super) const COLLECTIONS: &str = "collection";

type Known = BTreeMap<String, BTreeSet<String>>;

/// Follows the configuration until the process stops.
pub(super) async fn run(mesh: Mesh, owned: Arc<OwnedStore<Engine>>) {
    let mut changes = mesh.config().changes();
    let mut known = Known::new();
    while changes.changed().await.is_ok() {
        let now = look(&mesh);
        let foreign = mesh.bus().mode() == Mode::Interop;
        for gone in gone(&known, &now) {
            if foreign || matches!(gone, Gone::Workspace(_)) {
                forget(&owned, gone).await;
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

#[derive(Debug, PartialEq, Eq)]
enum Gone {
    Workspace(String),
    Collection(String, String),
}

/// What was there and is no more. A configuration without any workspace is a new one, not a deletion.
fn gone(before: &Known, now: &Known) -> Vec<Gone> {
    if now.is_empty() {
        return Vec::new();
    }
    let mut gone = Vec::new();
    for (workspace, collections) in before {
        match now.get(workspace) {
            None => gone.push(Gone::Workspace(workspace.clone())),
            Some(left) => gone.extend(
                collections
                    .difference(left)
                    .map(|name| Gone::Collection(workspace.clone(), name.clone())),
            ),
        }
    }
    gone
}

async fn forget(owned: &OwnedStore<Engine>, gone: Gone) {
    // A process that stands by must not open the store: its owner forgets.
    let Some(engine) = owned.opened() else {
        return;
    };
    let forgotten = match &gone {
        Gone::Workspace(workspace) => engine.drop_workspace(workspace).await,
        Gone::Collection(workspace, collection) => {
            engine
                .drop_collection(&DatasetKey::new(workspace, collection))
                .await
        }
    };
    match forgotten {
        Ok(_) => tracing::info!(?gone, "triples forgotten"),
        Err(error) => tracing::warn!(?gone, %error, "triples could not be forgotten"),
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
    fn only_what_was_seen_and_is_gone_is_forgotten() {
        let before = known(&[("a", &["x", "y"]), ("b", &["x"])]);
        let after = known(&[("a", &["y", "z"])]);
        let expected = [
            Gone::Collection("a".into(), "x".into()),
            Gone::Workspace("b".into()),
        ];
        assert_eq!(gone(&before, &after), expected);
        assert_eq!(gone(&before, &before), []);
        assert_eq!(gone(&before, &Known::new()), []);
        assert_eq!(gone(&Known::new(), &before), []);
    }
}
