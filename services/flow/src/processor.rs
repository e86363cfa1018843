//! The processor `flow-svc`.

use std::path::Path;
use std::sync::Arc;

use tg_collections::reaper;
use tg_mesh::{Mesh, OwnedStore, Processor, TaskKind};
use tg_schemas::Error;
use tg_schemas::msg::PutAside;
use tg_schemas::processors::PUT_ASIDE_BASE;
use tg_storage::Durability;

use crate::handler::Handler;
use crate::service::{Reading, Service, watch};
use crate::settings::FlowSettings;
use crate::store::Store;

/// Id of the processor.
pub const PROCESSOR: &str = "flow-svc";

/// Where the service keeps its own things below the data directory.
const FILE: &str = "flow.sqlite";

/// The flow service over a file in `data_dir`. A process that stands by leaves the
/// file alone.
pub fn processors(
    mesh: &Mesh,
    data_dir: &Path,
    durability: Durability,
) -> Result<Vec<Processor>, Error> {
    processors_with(mesh, data_dir, durability, FlowSettings::default())
}

/// As [`processors`], with other bounds.
pub fn processors_with(
    mesh: &Mesh,
    data_dir: &Path,
    durability: Durability,
    settings: FlowSettings,
) -> Result<Vec<Processor>, Error> {
    let file = data_dir.join(FILE);
    let quotas = settings.quotas;
    let open = move || Store::open(&file, durability, quotas);
    let store = OwnedStore::blocking(PROCESSOR, open);
    store.kept_in(data_dir.join(FILE));
    let service = Service::new(store.clone(), settings);
    let handler = Arc::new(Handler(service.clone()));
    mesh.spawn(TaskKind::Background, watch(mesh.clone()));
    let reaped = reaper::run(mesh.clone(), PROCESSOR, store.clone());
    mesh.spawn(TaskKind::Background, reaped);
    let processor = Processor::new(PROCESSOR)
        .serves_workspace("flow", handler.clone())
        .serves_system("flow", handler)
        .reads_system::<PutAside>(PUT_ASIDE_BASE, Arc::new(Reading(service)))
        .watches(&["flow", "flow-blueprint", "parameter-type", "processor-spec"])
        .owns(store);
    Ok(vec![processor])
}
