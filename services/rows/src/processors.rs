//! The rows as processors of the mesh: thin handlers, one store for both.

use std::sync::Arc;

use tg_collections::leftovers::{self, Looks};
use tg_collections::{Dropper, Retractor, reaper};
use tg_mesh::{LeasedStore, Mesh, Processor};
use tg_schemas::processors::{rows_query, rows_write};
use tg_schemas::table::TABLE;

use crate::handlers::{Querier, Writer};
use crate::options::{LOOK, Options, QUESTIONS, WRITES};
use crate::store::RowStore;
use crate::store::sqlite::SqliteRows;

/// Where the rows are below the data directory.
const FILE: &str = "rows.sqlite";
/// Name by which processes agree on the owner.
const STORE: &str = "rows";

/// The processors that keep and query rows, over one file. A process that stands by leaves the
/// file alone. Also starts the task that removes what was dropped.
pub fn processors(mesh: &Mesh, options: Options) -> Vec<Processor> {
    let file = options.data_dir.join(FILE);
    let (durability, quota) = (options.durability, options.quota());
    let opened = file.clone();
    let store = LeasedStore::blocking(STORE, move || {
        Ok::<_, tg_storage::StorageError>(SqliteRows::open(&opened, durability)?.holding(quota))
    });
    store.kept_in(file);
    leftovers::start(
        mesh,
        STORE,
        store.clone(),
        Looks::every(LOOK),
        |rows: Arc<SqliteRows>| async move { rows.purge_some().await },
    );
    reaper::start(mesh, STORE, store.clone());
    let writer = Processor::new(rows_write::PROCESSOR)
        .reads(rows_write::INPUT, Arc::new(Writer(store.clone())))
        .reads(
            rows_write::RETRACT,
            Arc::new(Retractor::new(store.clone(), ())),
        )
        .serves(rows_write::DROP, Arc::new(Dropper::new(store.clone())))
        .watches(&[TABLE])
        .concurrency(WRITES)
        .owns(store.clone());
    let query = Processor::new(rows_query::PROCESSOR)
        .serves(rows_query::REQUEST, Arc::new(Querier::new(store.clone())))
        .watches(&[TABLE])
        .concurrency(QUESTIONS)
        .owns(store);
    vec![writer, query]
}
