//! What a record's run says about where it goes.

use tg_mesh::Cx;
use tg_runs::RunContext;
use tg_schemas::msg::Metadata;

use crate::key::{CollectionKey, Origin};

/// The collection that a record is for.
pub(super) fn key(cx: &Cx, metadata: &Option<Metadata>) -> CollectionKey {
    let collection = metadata.as_ref().map_or("", |of| of.collection.as_str());
    asked(cx, collection)
}

/// The collection that a question is about.
pub(super) fn asked(cx: &Cx, collection: &str) -> CollectionKey {
    let named = CollectionKey::new(cx.workspace_key().as_str(), collection, 0);
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
