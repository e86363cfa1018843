//! The processor `config-svc`, and the store that this process opens when it becomes its owner.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tg_mesh::leased_store::off_runtime;
use tg_mesh::{Mesh, OwnedStore, Processor, TaskKind};
use tg_schemas::Error;
use tg_storage::Durability;
use tokio::sync::Notify;

use crate::announce;
use crate::handler::Handler;
use crate::service::Service;
use crate::store::Store;

/// Id of the processor.
pub const PROCESSOR: &str = "config-svc";

/// Where the service keeps its rows below the data directory.
const FILE: &str = "config.sqlite";

/// The config service over a file in `data_dir`. A deleted workspace can be restored for `grace`. A process that stands by leaves
/// the file alone.
///
/// Also starts the task that announces the version whenever a process begins to serve and after each
/// reconnect.
pub fn processors(
    mesh: &Mesh,
    data_dir: &Path,
    durability: Durability,
    grace: Duration,
) -> Result<Vec<Processor>, Error> {
    let file = data_dir.join(FILE);
    let store = OwnedStore::new(PROCESSOR, move || {
        let file = file.clone();
        async move {
            let store = off_runtime(move || Store::open(&file, durability)).await?;
            Ok(Service::load(store, grace).await?)
        }
    });
    store.kept_in(data_dir.join(FILE));
    let lost = Arc::new(Notify::new());
    let handler = Arc::new(Handler {
        store: store.clone(),
        lost: lost.clone(),
    });
    mesh.spawn(TaskKind::Background, announce::run(mesh.clone(), lost));
    let processor = Processor::new(PROCESSOR)
        .serves_system("config", handler.clone())
        .serves_workspace("config", handler)
        .concurrency(512)
        .owns(store);
    Ok(vec![processor])
}
