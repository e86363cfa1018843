//! Forgetting: what came from chunks that are no more, and collections that were deleted.
//! Idempotent, and durable before it is confirmed.

use std::collections::BTreeMap;
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

/// Removes what was dropped, little by little. Runs until the process stops.
pub(super) async fn tidy(mesh: Mesh, store: Arc<OwnedStore<Store>>) {
    while !mesh.stopping().is_cancelled() {
        tokio::select! {
            () = mesh.stopping().cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        // A process that stands by must not touch the store: its owner forgets.
        let Some(store) = store.opened() else {
            continue;
        };
        if let Err(error) = reap(&store).await {
            tracing::warn!(%error, "dropped rows could not be removed");
        }
    }
}

async fn reap(store: &Store) -> Result<(), tg_storage::StorageError> {
    while store.reap().await? {}
    Ok(())
}
