//! The service as processors of the mesh: thin handlers over one store.

use std::sync::Arc;

use tg_collections::leftovers::{self, Looks};
use tg_collections::reaper;
use tg_mesh::{LeasedStore, Mesh, Processor};
use tg_schemas::processors::{kg_store, knowledge};
use tokio::sync::Notify;

use crate::handlers::{Knowledge, Recorder};
use crate::options::{LOOK, Options, QUESTIONS, RECORDS};
use crate::store::CoreStore;
use crate::store::sqlite::SqliteCores;

/// Where the cores are below the data directory.
const FILE: &str = "knowledge.sqlite";
/// Name of the store among processes.
const STORE: &str = "knowledge";

/// The processors that keep knowledge cores, over one file. It is opened, and its lock taken,
/// when this process becomes its owner. Also starts the tasks that purge what was deleted.
pub fn processors(mesh: &Mesh, options: Options) -> Vec<Processor> {
    let file = options.data_dir.join(FILE);
    let (opened, quota) = (file.clone(), options.quota());
    let open = move || SqliteCores::open(&opened, options.durability, quota);
    let store = LeasedStore::blocking(STORE, open);
    store.kept_in(file);
    let wake = Arc::new(Notify::new());
    let looks = Looks {
        every: LOOK,
        wake: wake.clone(),
    };
    leftovers::start(
        mesh,
        STORE,
        store.clone(),
        looks,
        |cores: Arc<SqliteCores>| async move { cores.purge_some().await },
    );
    reaper::start(mesh, STORE, store.clone());

    let recorder = Arc::new(Recorder(store.clone()));
    let asked = Arc::new(Knowledge {
        store: store.clone(),
        wake,
    });
    vec![
        Processor::new(knowledge::PROCESSOR)
            .serves(knowledge::KNOWLEDGE, asked)
            .watches(&["flow", "collection"])
            .concurrency(QUESTIONS)
            .owns(store.clone()),
        Processor::new(kg_store::PROCESSOR)
            .reads(kg_store::TRIPLES_INPUT, recorder.clone())
            .reads(kg_store::GRAPH_EMBEDDINGS_INPUT, recorder)
            .concurrency(RECORDS)
            .owns(store),
    ]
}
