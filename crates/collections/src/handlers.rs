//! The two handlers that every store of collections has: retraction by provenance, and the end of a collection. Both
//! may be repeated, and are confirmed when they are durable. A retraction that was done is not done again.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{ConsumeError, Cx, LeasedStore, RecordConsumer, RequestHandler, Responder};
use tg_schemas::msg::{CollectionDrop, CollectionDropped, Retract};
use tg_schemas::{Error, ErrorCode};
use tg_storage::DoneOnce;

use crate::{CollectionKey, CollectionStore, Target};

/// Takes back what came from chunks that are no more.
pub struct Retractor<S: CollectionStore> {
    store: Arc<LeasedStore<S>>,
    part: S::Part,
}

impl<S: CollectionStore> Retractor<S> {
    /// The handler for one part of what a store keeps.
    pub fn new(store: Arc<LeasedStore<S>>, part: S::Part) -> Self {
        Self { store, part }
    }
}

#[async_trait]
impl<S: CollectionStore> RecordConsumer<Retract> for Retractor<S> {
    async fn consume(&self, cx: Cx, record: Retract) -> Result<(), ConsumeError> {
        let Some(target) = Target::of(&cx, record.metadata.as_ref()) else {
            return Ok(());
        };
        let store = self.store.get().await?;
        // A record without an id is of a foreign sender, and done as often as it comes.
        let once = (!cx.id.is_empty()).then(|| DoneOnce {
            owner: target.key.workspace().to_owned(),
            purpose: cx.scope.processor.clone(),
            record: cx.id.to_string(),
        });
        if let Some(once) = &once
            && store.retractions().is_done(once.clone()).await?
        {
            // Delivered again, as its receipt was lost: what fits it now was made since.
            return Ok(());
        }
        let gone = store.retract(&target.key, target.kind, self.part, record);
        metrics::counter!(S::RETRACTED).increment(gone.await?);
        // Before anybody hears that it is done: a run that makes the same again begins only then.
        if let Some(once) = once {
            store.retractions().note(once).await?;
        }
        Ok(())
    }
}

/// Ends collections when their owner asks.
pub struct Dropper<S>(Arc<LeasedStore<S>>);

impl<S> Dropper<S> {
    /// The handler of a store.
    pub fn new(store: Arc<LeasedStore<S>>) -> Self {
        Self(store)
    }
}

#[async_trait]
impl<S: CollectionStore> RequestHandler<CollectionDrop, CollectionDropped> for Dropper<S> {
    async fn serve(
        &self,
        _: Cx,
        ask: CollectionDrop,
        mut out: Responder<CollectionDropped>,
    ) -> Result<(), Error> {
        let last = named(&ask)?;
        let count = self.0.get().await?.drop_collection(&last).await?;
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        out.send(CollectionDropped {
            error: None,
            removed: BTreeMap::from([(S::ITEMS.to_owned(), count)]),
        })
        .await
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
    // On the wire the generation keeps its older name.
    Ok(CollectionKey::new(&ask.workspace, &ask.collection).in_generation(ask.generation))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drop_names_a_generation_and_both_names() {
        let ask = |workspace: &str, collection: &str| CollectionDrop {
            workspace: workspace.into(),
            collection: collection.into(),
            generation: 4,
        };
        let key = named(&ask("w", "c")).unwrap();
        assert_eq!(key, CollectionKey::new("w", "c").in_generation(4));
        for (bad, field) in [(ask("", "c"), "workspace"), (ask("w", ""), "collection")] {
            let error = named(&bad).unwrap_err();
            assert_eq!(error.message, format!("{field}: is required"));
        }
    }
}
