//! The processor `flow-svc`.

use std::sync::Arc;

use tg_collections::reaper;
use tg_mesh::{LeasedStore, Mesh, Processor, TaskKind};
use tg_schemas::processors::flow_svc;
use tg_storage::StorageError;

use crate::handlers::{Handler, Reading};
use crate::operations::{Service, take_up};
use crate::options::Options;
use crate::store::{SqliteFlows, Store};

/// Id of the processor.
pub const PROCESSOR: &str = flow_svc::PROCESSOR.id;

/// Where the service keeps its own things below the data directory.
const FILE: &str = "flow.sqlite";

/// The flow service over a file in the data directory. A process that stands by leaves the file alone; a store that
/// cannot be opened is reported when the processor is hosted.
pub fn processors(mesh: &Mesh, options: Options) -> Vec<Processor> {
    let file = options.data_dir.join(FILE);
    let (durability, quotas) = (options.durability, options.quotas());
    let opened = file.clone();
    let store = LeasedStore::blocking(PROCESSOR, move || {
        let store = SqliteFlows::open(&opened, durability, quotas)?;
        Ok::<_, StorageError>(Store::new(Arc::new(store)))
    });
    store.kept_in(file);
    let service = Service::new(store.clone(), options.waits, options.flows_per_workspace);
    let handler = Arc::new(Handler(service.clone()));
    mesh.spawn(TaskKind::Background, take_up(mesh.clone()));
    reaper::start(mesh, PROCESSOR, store.clone());
    let processor = Processor::new(flow_svc::PROCESSOR)
        .serves(flow_svc::FLOW, handler.clone())
        .serves(flow_svc::FLOW_OF_SYSTEM, handler)
        .reads(flow_svc::DEAD_LETTERS, Arc::new(Reading(service)))
        .watches(&["flow", "flow-blueprint", "parameter-type", "processor-spec"])
        .owns(store);
    vec![processor]
}
