//! The engine as processors of the mesh: thin handlers, one engine for all of them.

mod neighbours;
mod query;
mod sparql;
mod tidy;
mod write;

use std::path::Path;
use std::sync::Arc;

use tg_collections::{Dropper, Retractor, reaper};
use tg_mesh::{Mesh, OpenFault, OwnedStore, Processor, TaskKind};
use tg_schemas::msg::{RETRACT, drop_topic};
use tg_schemas::{Error, ErrorCode};
use tg_storage::Durability;

use crate::{Engine, GraphError, Limits};

/// Where the service keeps its journal below the data directory.
const FILE: &str = "graph.sqlite";
/// Name of the store, by which processes agree on its owner.
const STORE: &str = "graph";

/// The processors that write and query triples, over one file in `data_dir`. A process that
/// stands by leaves the file alone.
///
/// Also starts the task that forgets what belonged to deleted workspaces.
pub fn processors(
    mesh: &Mesh,
    data_dir: &Path,
    durability: Durability,
    limits: Limits,
) -> Result<Vec<Processor>, Error> {
    let file = data_dir.join(FILE);
    let open = move || Engine::open(&file, durability, limits.clone());
    let owned = OwnedStore::blocking(STORE, open);
    owned.kept_in(data_dir.join(FILE));
    mesh.spawn(TaskKind::Background, tidy::run(mesh.clone(), owned.clone()));
    mesh.spawn(
        TaskKind::Background,
        reaper::run(mesh.clone(), STORE, owned.clone()),
    );
    let writer = Processor::new("triples-write")
        .reads("input", Arc::new(write::Writer(owned.clone())))
        .reads_own(RETRACT, Arc::new(Retractor::new(owned.clone(), ())))
        .serves_system(&drop_topic("graph"), Arc::new(Dropper::new(owned.clone())))
        .concurrency(128)
        .watches(&[tidy::COLLECTIONS])
        .owns(owned.clone());
    let query = Processor::new("triples-query")
        .serves("request", Arc::new(query::Querier(owned.clone())))
        .serves_own(
            tg_schemas::msg::NEIGHBOURS,
            Arc::new(neighbours::Neighbours(owned.clone())),
        )
        .serves_own(
            tg_schemas::msg::SOURCES,
            Arc::new(neighbours::Sources(owned.clone())),
        )
        .concurrency(256)
        .watches(&[tidy::COLLECTIONS])
        .owns(owned.clone());
    let sparql = Processor::new("sparql-query")
        .serves("request", Arc::new(sparql::Sparql(owned.clone())))
        .concurrency(64)
        .watches(&[tidy::COLLECTIONS])
        .owns(owned);
    Ok(vec![writer, query, sparql])
}

impl From<GraphError> for OpenFault {
    fn from(error: GraphError) -> Self {
        match error {
            GraphError::Journal(fault) => fault.into(),
            error => Self::Failed(error.to_wire(ErrorCode::Storage.as_str())),
        }
    }
}

/// A limit as asked for: nothing and less mean none.
fn limit(asked: i64) -> Option<usize> {
    usize::try_from(asked).ok().filter(|limit| *limit > 0)
}

/// Items of a streamed part: what is asked for, within reason.
fn batch(asked: i64) -> usize {
    usize::try_from(asked).map_or(20, |size| match size {
        0 => 20,
        size => size.min(5_000),
    })
}
