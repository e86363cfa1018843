//! Forgetting: what came from chunks that are no more, and collections that were deleted. Idempotent, and
//! durable before it is confirmed.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{Cx, Out, OwnedStore, Read, ReadFault, Serve};
use tg_schemas::msg::{CollectionDrop, CollectionDropped, Retract};
use tg_schemas::{Error, ErrorCode};

use super::run;
use crate::{DatasetKey, Engine, convert};

/// Takes back what came from chunks.
pub(super) struct Retractor(pub(super) Arc<OwnedStore<Engine>>);

#[async_trait]
impl Read<Retract> for Retractor {
    async fn read(&self, cx: Cx, record: Retract) -> Result<(), ReadFault> {
        let key = run::key(&cx, &record.metadata);
        if !run::is_current(&cx, &key) {
            return Ok(());
        }
        let engine = self.0.get().await?;
        // What is no RDF was never written.
        let quads = record
            .triples
            .iter()
            .filter_map(|triple| convert::quad("", triple).ok());
        let gone = engine.retract(&key, &record.chunks, quads.collect(), run::origin(&cx));
        let gone = gone.await;
        let gone = gone.map_err(|error| error.to_wire(ErrorCode::Storage.as_str()))?;
        metrics::counter!("tg_graph_triples_retracted_total").increment(gone as u64);
        Ok(())
    }
}

/// Drops collections.
pub(super) struct Dropper(pub(super) Arc<OwnedStore<Engine>>);

#[async_trait]
impl Serve<CollectionDrop, CollectionDropped> for Dropper {
    async fn serve(
        &self,
        _: Cx,
        ask: CollectionDrop,
        mut out: Out<CollectionDropped>,
    ) -> Result<(), Error> {
        for (field, value) in [
            ("workspace", &ask.workspace),
            ("collection", &ask.collection),
        ] {
            if value.is_empty() {
                let text = format!("{field}: is missing");
                return Err(Error::new(ErrorCode::BadRequest, text));
            }
        }
        let last = DatasetKey::new(&ask.workspace, &ask.collection).in_life(ask.incarnation);
        let engine = self.0.get().await?;
        let dropped = engine.drop_collection(&last).await;
        let count = dropped.map_err(|error| error.to_wire(ErrorCode::Storage.as_str()))?;
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        out.send(CollectionDropped {
            error: None,
            removed: BTreeMap::from([("triples".to_owned(), count)]),
        })
        .await
    }
}
