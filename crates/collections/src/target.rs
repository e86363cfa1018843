//! What a message says about the collection it is for.

use tg_mesh::Cx;
use tg_runs::RunContext;
use tg_schemas::msg::Metadata;
use tg_schemas::{Error, ErrorCode};

use crate::{CollectionKey, WriteKind};

impl CollectionKey {
    /// The collection that a question is about: an empty name is `default`, and inside a run the generation is the
    /// run's.
    pub fn of(cx: &Cx, collection: &str) -> Self {
        let named = Self::new(cx.workspace_key().as_str(), collection);
        let generation = cx.generation(named.collection());
        named.in_generation(generation)
    }
}

/// Where a record's change goes, and how it comes there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The collection.
    pub key: CollectionKey,
    /// How the change comes.
    pub kind: WriteKind,
}

impl Target {
    /// The target of a record. `None`: it was sent, or its run began, in a generation of the collection that has ended
    /// since, so the record changes nothing.
    pub fn of(cx: &Cx, metadata: Option<&Metadata>) -> Option<Self> {
        let collection = metadata.map_or("", |of| of.collection.as_str());
        let key = CollectionKey::of(cx, collection);
        if !cx.is_current(key.collection()) {
            metrics::counter!("tg_records_of_ended_collections_total").increment(1);
            cx.not_kept(ended(key.collection()));
            return None;
        }
        let kind = WriteKind::of(cx, key.collection());
        Some(Self { key, kind })
    }
}

/// Why a record changes nothing.
pub fn ended(collection: &str) -> Error {
    let why = format!("collection: {collection} was deleted after it was sent");
    Error::new(ErrorCode::Conflict, why)
}
