//! The processor `config-svc`, and the store that this process opens when it becomes its owner.

use std::sync::Arc;

use tg_mesh::leased_store::off_runtime;
use tg_mesh::{LeasedStore, Mesh, Processor, TaskKind};
use tg_schemas::processors::config_svc;
use tokio::sync::Notify;

use crate::announce;
use crate::cached::CachedConfig;
use crate::handlers::Handler;
use crate::options::Options;
use crate::store::SqliteStore;

/// Id of the processor.
pub const PROCESSOR: &str = config_svc::PROCESSOR.id;

/// Where the service keeps its rows below the data directory.
const FILE: &str = "config.sqlite";

/// Requests in progress at once.
const CONCURRENCY: usize = 512;

/// The config service over a file in the data directory. A process that stands by leaves the file alone.
///
/// Also starts the task that announces the version whenever a process begins to serve and after each reconnect.
///
/// A store that cannot be opened is reported when the processor is hosted.
pub fn processors(mesh: &Mesh, options: Options) -> Vec<Processor> {
    let file = options.data_dir.join(FILE);
    let durability = options.durability;
    let opened = file.clone();
    let store = LeasedStore::new(PROCESSOR, move || {
        let (file, options) = (opened.clone(), options.clone());
        async move {
            let store = off_runtime(move || SqliteStore::open(&file, durability)).await?;
            Ok(CachedConfig::load(Arc::new(store), &options).await?)
        }
    });
    store.kept_in(file);
    let lost = Arc::new(Notify::new());
    let handler = Arc::new(Handler {
        store: store.clone(),
        lost: lost.clone(),
    });
    mesh.spawn(TaskKind::Background, announce::run(mesh.clone(), lost));
    let processor = Processor::new(config_svc::PROCESSOR)
        .serves(config_svc::CONFIG.replied_as(), handler.clone())
        .serves(config_svc::CONFIG_OF_WORKSPACE.replied_as(), handler)
        .concurrency(CONCURRENCY)
        .owns(store);
    vec![processor]
}
