//! The processor `librarian`, and the library that this process opens when it becomes its owner.

use std::sync::Arc;

use tg_collections::reaper;
use tg_mesh::leased_store::off_runtime;
use tg_mesh::{LeasedStore, Mesh, Processor, TaskKind};
use tg_schemas::processors::librarian;
use tg_storage::StorageError;
use tg_storage::blob::BlobStore;
use tokio::sync::Notify;

use crate::config;
use crate::handlers::{Collections, CompletionReports, Handler, Texts};
use crate::librarian::Librarian;
use crate::library::Library;
use crate::options::Options;
use crate::reconciler;
use crate::store::SqliteLibrary;

/// Id of the processor.
pub const PROCESSOR: &str = librarian::PROCESSOR.id;

/// Below the data directory: rows, and content by hash.
const FILE: &str = "librarian.sqlite";
const CONTENT: &str = "content";

/// Requests in progress at once: each run of an agent stores a text or two at its end.
const CONCURRENCY: usize = 512;

/// The librarian over its data directory. A process that stands by leaves its files alone; a store that cannot be
/// opened is reported when the processor is hosted.
pub fn processors(mesh: &Mesh, options: Options) -> Vec<Processor> {
    let file = options.data_dir.join(FILE);
    let (rows, content) = (file.clone(), options.data_dir.join(CONTENT));
    let (durability, quota) = (options.durability, options.quota());
    let wake = Arc::new(Notify::new());
    let told = wake.clone();
    let store = LeasedStore::new(PROCESSOR, move || {
        let (rows, content, wake) = (rows.clone(), content.clone(), told.clone());
        async move {
            let open = move || {
                // The lock of the rows guards the content too.
                let rows = Arc::new(SqliteLibrary::open(&rows, durability)?);
                let content = Arc::new(BlobStore::open(&content, durability)?);
                Ok::<_, StorageError>(Library::new(rows, content, quota))
            };
            let library = off_runtime(open).await?;
            wake.notify_one();
            Ok(Librarian::new(library, wake))
        }
    });
    store.kept_in(file);
    let kept = reconciler::run(mesh.clone(), store.clone(), wake);
    mesh.spawn(TaskKind::Background, kept);
    reaper::start(mesh, PROCESSOR, store.clone());
    let processor = Processor::new(librarian::PROCESSOR)
        .serves(librarian::LIBRARIAN, Arc::new(Handler(store.clone())))
        .serves(librarian::COLLECTION, Arc::new(Collections(store.clone())))
        .reads(
            librarian::RUN_TALLY,
            Arc::new(CompletionReports(store.clone())),
        )
        .reads(librarian::LIBRARY_TEXTS, Arc::new(Texts(store.clone())))
        .watches(config::watched())
        .concurrency(CONCURRENCY)
        .owns(store);
    vec![processor]
}
