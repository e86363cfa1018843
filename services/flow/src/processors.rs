//! The processor `flow-svc`.

use std::sync::Arc;

use tg_collections::reaper;
use tg_mesh::{Mesh, OwnedStore, Processor, TaskKind};
use tg_schemas::Error;
use tg_schemas::msg::DeadLetter;
use tg_schemas::processors::DEAD_LETTER_BASE;
use tg_storage::StorageError;

use crate::handlers::{Handler, Reading};
use crate::options::Options;
use crate::service::{Service, watch};
use crate::store::{SqliteFlows, Store};

/// Id of the processor.
pub const PROCESSOR: &str = "flow-svc";

/// Where the service keeps its own things below the data directory.
const FILE: &str = "flow.sqlite";

/// The flow service over a file in the data directory. A process that stands by leaves the file alone.
///
/// # Errors
///
/// If the processor cannot be put together. A store that cannot be opened is told when the processor is hosted.
pub fn processors(mesh: &Mesh, options: Options) -> Result<Vec<Processor>, Error> {
    let file = options.data_dir.join(FILE);
    let (durability, quotas) = (options.durability, options.quotas());
    let opened = file.clone();
    let store = OwnedStore::blocking(PROCESSOR, move || {
        let store = SqliteFlows::open(&opened, durability, quotas)?;
        Ok::<_, StorageError>(Store::new(Arc::new(store)))
    });
    store.kept_in(file);
    let service = Service::new(store.clone(), options.waits);
    let handler = Arc::new(Handler(service.clone()));
    mesh.spawn(TaskKind::Background, watch(mesh.clone()));
    let reaped = reaper::run(mesh.clone(), PROCESSOR, store.clone());
    mesh.spawn(TaskKind::Background, reaped);
    let processor = Processor::new(PROCESSOR)
        .serves_workspace("flow", handler.clone())
        .serves_system("flow", handler)
        .reads_system::<DeadLetter>(DEAD_LETTER_BASE, Arc::new(Reading(service)))
        .watches(&["flow", "flow-blueprint", "parameter-type", "processor-spec"])
        .owns(store);
    Ok(vec![processor])
}
