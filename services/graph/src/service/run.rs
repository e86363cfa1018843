//! What a message says about where it goes.

use tg_mesh::Cx;
use tg_runs::RunContext;
use tg_schemas::msg::Metadata;

use crate::{DatasetKey, Origin};

/// The dataset that a record is for.
pub(super) fn key(cx: &Cx, metadata: &Option<Metadata>) -> DatasetKey {
    let collection = metadata.as_ref().map_or("", |of| of.collection.as_str());
    asked(cx, collection)
}

/// The dataset that a question is about.
pub(super) fn asked(cx: &Cx, collection: &str) -> DatasetKey {
    let named = DatasetKey::new(cx.workspace_key().as_str(), collection);
    let incarnation = cx.incarnation(named.collection());
    named.in_life(incarnation)
}

/// Whether a record came in a run, whose collection may have ended since.
pub(super) fn origin(cx: &Cx) -> Origin {
    match cx.run() {
        Some(_) => Origin::Run,
        None => Origin::Open,
    }
}

/// Whether the collection of a record is still the one that its run began with.
pub(super) fn is_current(cx: &Cx, key: &DatasetKey) -> bool {
    cx.is_current(key.collection())
}
