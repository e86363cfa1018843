//! Forgetting: what came from chunks that are no more, collections that were deleted, workspaces that are
//! gone. Idempotent, and durable before it is confirmed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tg_mesh::{Cx, Mesh, Out, OwnedStore, Read, ReadFault, Serve};
use tg_schemas::msg::{CollectionDrop, CollectionDropped, Retract};
use tg_schemas::{Error, ErrorCode};

use super::key;
use crate::store::Store;

/// How often dropped rows are looked for.
const EVERY: Duration = Duration::from_secs(5);

/// See the module.
pub(super) struct Forgetter(pub(super) Arc<OwnedStore<Store>>);

#[async_trait]
impl Read<Retract> for Forgetter {
    async fn read(&self, cx: Cx, record: Retract) -> Result<(), ReadFault> {
        let key = key(&cx, record.metadata.as_ref());
        let store = self.0.get().await?;
        let gone = store.retract(&key, record.chunks).await;
        let gone = gone.map_err(Error::from)?;
        metrics::counter!("tg_rows_retracted_total").increment(gone as u64);
        Ok(())
    }
}

#[async_trait]
impl Serve<CollectionDrop, CollectionDropped> for Forgetter {
    async fn serve(
        &self,
        _: Cx,
        ask: CollectionDrop,
        mut out: Out<CollectionDropped>,
    ) -> Result<(), Error> {
        for (name, value) in [
            ("workspace", &ask.workspace),
            ("collection", &ask.collection),
        ] {
            if value.is_empty() {
                let text = format!("{name}: must not be empty");
                return Err(Error::new(ErrorCode::BadRequest, text));
            }
        }
        let store = self.0.get().await?;
        let rows = store
            .drop_collection(&ask.workspace, &ask.collection, ask.incarnation)
            .await?;
        out.send(CollectionDropped {
            error: None,
            removed: BTreeMap::from([("rows".to_owned(), rows)]),
        })
        .await
    }
}

/// Removes what was dropped, and forgets workspaces that are deleted while this process has the store open.
/// Runs until the process stops.
pub(super) async fn tidy(mesh: Mesh, store: Arc<OwnedStore<Store>>) {
    let mut changes = mesh.config().changes();
    let mut known = BTreeSet::new();
    loop {
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(EVERY) => {}
        }
        let now: BTreeSet<String> = mesh.config().workspaces().into_iter().collect();
        // A configuration without any workspace is a new one, not a deletion.
        let gone: Vec<String> = match now.is_empty() {
            true => Vec::new(),
            false => known.difference(&now).cloned().collect(),
        };
        known = now;
        // A process that stands by must not touch the store: its owner forgets.
        let Some(store) = store.opened() else {
            continue;
        };
        if let Err(error) = forget(&store, &gone).await {
            tracing::warn!(%error, "rows could not be forgotten");
        }
    }
}

async fn forget(store: &Store, workspaces: &[String]) -> Result<(), tg_storage::StorageError> {
    for workspace in workspaces {
        store.drop_workspace(workspace).await?;
    }
    while store.reap().await? {}
    Ok(())
}
