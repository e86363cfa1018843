//! Forgetting: what came from chunks that are no more, and collections that were deleted. Idempotent, and
//! durable before it is confirmed.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{Cx, Out, OwnedStore, Read, ReadFault, Serve};
use tg_schemas::msg::{CollectionDrop, CollectionDropped, Retract};
use tg_schemas::{Error, ErrorCode};

use super::run;
use crate::engine::Engine;
use crate::key::{CollectionKey, Kind};
use crate::keywords::Keywords;

/// Takes back the vectors of one kind.
pub(super) struct RetractVectors(pub(super) Arc<OwnedStore<Engine>>, pub(super) Kind);

#[async_trait]
impl Read<Retract> for RetractVectors {
    async fn read(&self, cx: Cx, record: Retract) -> Result<(), ReadFault> {
        let key = run::key(&cx, &record.metadata);
        let engine = self.0.get().await?;
        let count = engine.retract(&key, self.1, record.chunks).await;
        let count = count.map_err(Error::from)?;
        metrics::counter!("tg_vectors_retracted_total").increment(count as u64);
        Ok(())
    }
}

/// Takes back the words of chunks.
pub(super) struct RetractKeywords(pub(super) Arc<OwnedStore<Keywords>>);

#[async_trait]
impl Read<Retract> for RetractKeywords {
    async fn read(&self, cx: Cx, record: Retract) -> Result<(), ReadFault> {
        let key = run::key(&cx, &record.metadata);
        let index = self.0.get().await?;
        let count = index.retract(&key, record.chunks).await;
        let count = count.map_err(Error::from)?;
        metrics::counter!("tg_keywords_retracted_total").increment(count as u64);
        Ok(())
    }
}

/// Drops the vectors of collections.
pub(super) struct DropVectors(pub(super) Arc<OwnedStore<Engine>>);

#[async_trait]
impl Serve<CollectionDrop, CollectionDropped> for DropVectors {
    async fn serve(
        &self,
        _: Cx,
        ask: CollectionDrop,
        out: Out<CollectionDropped>,
    ) -> Result<(), Error> {
        let key = named(&ask)?;
        let count = self.0.get().await?.drop_collection(&key).await?;
        confirm(out, "vectors", count).await
    }
}

/// Drops the keyword indexes of collections.
pub(super) struct DropKeywords(pub(super) Arc<OwnedStore<Keywords>>);

#[async_trait]
impl Serve<CollectionDrop, CollectionDropped> for DropKeywords {
    async fn serve(
        &self,
        _: Cx,
        ask: CollectionDrop,
        out: Out<CollectionDropped>,
    ) -> Result<(), Error> {
        let key = named(&ask)?;
        let count = self.0.get().await?.drop_collection(&key).await?;
        confirm(out, "keywords", count).await
    }
}

fn named(ask: &CollectionDrop) -> Result<CollectionKey, Error> {
    for (field, value) in [
        ("workspace", &ask.workspace),
        ("collection", &ask.collection),
    ] {
        if value.is_empty() {
            let text = format!("{field}: is required");
            return Err(Error::new(ErrorCode::BadRequest, text));
        }
    }
    Ok(CollectionKey::new(
        &ask.workspace,
        &ask.collection,
        ask.incarnation,
    ))
}

async fn confirm(mut out: Out<CollectionDropped>, kind: &str, count: usize) -> Result<(), Error> {
    out.send(CollectionDropped {
        error: None,
        removed: BTreeMap::from([(kind.to_owned(), count as i64)]),
    })
    .await
}
