//! The service as processors of the mesh: thin handlers over one store.

mod cores;
mod keep;
mod tidy;

use std::path::Path;
use std::sync::Arc;

use tg_collections::reaper;
use tg_mesh::{Mesh, OwnedStore, Processor, TaskKind};
use tg_schemas::msg::{GraphEmbeddings, KnowledgeRequest, KnowledgeResponse, Triples};
use tg_storage::Durability;
use tokio::sync::Notify;

use crate::store::Cores;
use cores::Door;
use keep::Keeper;

/// Where the cores are below the data directory.
const FILE: &str = "knowledge.sqlite";
/// Name of the store among processes.
const STORE: &str = "knowledge";
/// Questions in progress in one workspace: an import puts many records side by side.
const QUESTIONS: usize = 128;
/// Records of a flow being kept: they share commits.
const RECORDS: usize = 128;

/// The processors that keep knowledge cores, over one file in `data_dir`. It is opened, and its lock taken,
/// when this process becomes its owner. Also starts the task that reclaims what was deleted.
pub fn processors(mesh: &Mesh, data_dir: &Path, durability: Durability) -> Vec<Processor> {
    let file = data_dir.join(FILE);
    let open = move || Cores::open(&file, durability);
    let store = OwnedStore::blocking(STORE, open);
    store.kept_in(data_dir.join(FILE));
    let wake = Arc::new(Notify::new());
    let tidy = tidy::run(mesh.clone(), store.clone(), wake.clone());
    mesh.spawn(TaskKind::Background, tidy);
    mesh.spawn(
        TaskKind::Background,
        reaper::run(mesh.clone(), STORE, store.clone()),
    );

    let keeper = Arc::new(Keeper(store.clone()));
    let door = Arc::new(Door {
        store: store.clone(),
        wake,
    });
    vec![
        Processor::new("knowledge")
            .serves_workspace::<KnowledgeRequest, KnowledgeResponse>("knowledge", door)
            .watches(&["flow", "collection"])
            .concurrency(QUESTIONS)
            .owns(store.clone()),
        Processor::new("kg-store")
            .reads::<Triples>("triples-input", keeper.clone())
            .reads::<GraphEmbeddings>("graph-embeddings-input", keeper)
            .concurrency(RECORDS)
            .owns(store),
    ]
}
