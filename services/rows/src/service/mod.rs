//! The rows as processors of the mesh: thin handlers, one store for both.

mod forget;
mod query;
mod schemas;
mod write;

use std::path::Path;
use std::sync::Arc;

use tg_collections::reaper;
use tg_mesh::{Cx, Mesh, OwnedStore, Processor, TaskKind};
use tg_runs::RunContext;
use tg_schemas::msg::{ExtractedObject, Metadata, RETRACT, drop_topic};
use tg_schemas::table::TABLE;
use tg_storage::Durability;

use crate::key::CollectionKey;
use crate::store::Store;
use forget::Forgetter;
use query::Querier;
use write::Writer;

/// Where the rows are below the data directory.
const FILE: &str = "rows.sqlite";
/// Name by which processes agree on the owner.
const STORE: &str = "rows";
/// Records in progress: they share commits.
const WRITES: usize = 128;
/// Questions in progress.
const QUESTIONS: usize = 64;

/// The processors that keep and query rows, over one file in `data_dir`. A process that stands by leaves the
/// file alone. Also starts the task that removes what was dropped.
///
/// A workspace may keep `most` rows.
pub fn processors(
    mesh: &Mesh,
    data_dir: &Path,
    durability: Durability,
    most: u64,
) -> Vec<Processor> {
    let file = data_dir.join(FILE);
    let store = OwnedStore::blocking(STORE, move || {
        Ok::<_, tg_storage::StorageError>(Store::open(&file, durability)?.holding(most))
    });
    store.kept_in(data_dir.join(FILE));
    mesh.spawn(
        TaskKind::Background,
        forget::tidy(mesh.clone(), store.clone()),
    );
    mesh.spawn(
        TaskKind::Background,
        reaper::run(mesh.clone(), STORE, store.clone()),
    );
    let forgetter = Arc::new(Forgetter(store.clone()));
    let writer = Processor::new("rows-write")
        .reads::<ExtractedObject>("input", Arc::new(Writer(store.clone())))
        .reads_own(RETRACT, forgetter.clone())
        .serves_system(&drop_topic(STORE), forgetter)
        .watches(&[TABLE])
        .concurrency(WRITES)
        .owns(store.clone());
    let query = Processor::new("rows-query")
        .serves("request", Arc::new(Querier::new(store.clone())))
        .watches(&[TABLE])
        .concurrency(QUESTIONS)
        .owns(store);
    vec![writer, query]
}

/// The collection that a record is for.
fn key(cx: &Cx, metadata: Option<&Metadata>) -> CollectionKey {
    let collection = metadata.map_or("", |metadata| metadata.collection.as_str());
    of(cx, collection)
}

/// A collection in its present life.
fn of(cx: &Cx, collection: &str) -> CollectionKey {
    let named = CollectionKey::new(cx.workspace_key().as_str(), collection, 0);
    let incarnation = cx.incarnation(&named.collection);
    CollectionKey {
        incarnation,
        ..named
    }
}
