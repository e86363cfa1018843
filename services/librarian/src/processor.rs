//! The processor `librarian`, and the library that this process opens when it becomes its owner.

use std::path::Path;
use std::sync::Arc;

use tg_collections::reaper;
use tg_mesh::leased_store::off_runtime;
use tg_mesh::{Mesh, OwnedStore, Processor, TaskKind};
use tg_schemas::Error;
use tg_schemas::msg::{LIBRARY_TEXTS, LibraryTexts, RUN_TALLY, RunTally};
use tg_storage::Durability;
use tokio::sync::Notify;

use crate::collections::Collections;
use crate::config;
use crate::engine::quota::Quota;
use crate::handler::Handler;
use crate::keeper;
use crate::library::Library;
use crate::processing::Tally;
use crate::service::Librarian;
use crate::texts::Texts;

/// Id of the processor.
pub const PROCESSOR: &str = "librarian";

/// Below the data directory: rows, and content by hash.
const FILE: &str = "librarian.sqlite";
const CONTENT: &str = "content";

/// Requests in progress at once: each run of an agent stores a text or two at its end.
const CONCURRENCY: usize = 512;

/// The librarian over `data_dir`, with the usual quota for each workspace.
///
/// # Errors
///
/// As [`processors_with`].
pub fn processors(
    mesh: &Mesh,
    data_dir: &Path,
    durability: Durability,
) -> Result<Vec<Processor>, Error> {
    processors_with(mesh, data_dir, durability, Quota::default())
}

/// The librarian over `data_dir`. A process that stands by leaves its files alone.
///
/// # Errors
///
/// If the processor cannot be put together.
pub fn processors_with(
    mesh: &Mesh,
    data_dir: &Path,
    durability: Durability,
    quota: Quota,
) -> Result<Vec<Processor>, Error> {
    let (rows, content) = (data_dir.join(FILE), data_dir.join(CONTENT));
    let wake = Arc::new(Notify::new());
    let told = wake.clone();
    let store = OwnedStore::new(PROCESSOR, move || {
        let (rows, content, wake) = (rows.clone(), content.clone(), told.clone());
        async move {
            let open = move || Library::open(&rows, &content, durability, quota);
            let library = off_runtime(open).await?;
            wake.notify_one();
            Ok(Librarian::new(library, wake))
        }
    });
    store.kept_in(data_dir.join(FILE));
    let kept = keeper::run(mesh.clone(), store.clone(), wake);
    mesh.spawn(TaskKind::Background, kept);
    let reaped = reaper::run(mesh.clone(), "librarian", store.clone());
    mesh.spawn(TaskKind::Background, reaped);
    let processor = Processor::new(PROCESSOR)
        .serves_workspace("librarian", Arc::new(Handler(store.clone())))
        .serves_workspace("collection", Arc::new(Collections(store.clone())))
        .reads_system::<RunTally>(RUN_TALLY, Arc::new(Tally(store.clone())))
        .reads_system::<LibraryTexts>(LIBRARY_TEXTS, Arc::new(Texts(store.clone())))
        .watches(config::watched())
        .concurrency(CONCURRENCY)
        .owns(store);
    Ok(vec![processor])
}
