//! The engine as processors of the mesh: thin handlers, one engine for all of them.

mod owned;
mod query;
mod sparql;
mod tidy;
mod write;

use std::path::Path;
use std::sync::Arc;

use tg_mesh::{Mesh, Processor, TaskKind};
use tg_schemas::Error;
use tg_storage::Durability;

use owned::Owned;

/// Where the service keeps its journal below the data directory.
const FILE: &str = "graph.sqlite";

/// The processors that write and query triples, over one file in `data_dir`. The file is opened, and its
/// lock taken, when this process is asked first: a process that stands by leaves it alone.
///
/// Also starts the task that forgets what belonged to deleted collections and workspaces.
pub fn processors(
    mesh: &Mesh,
    data_dir: &Path,
    durability: Durability,
) -> Result<Vec<Processor>, Error> {
    let owned = Arc::new(Owned::new(data_dir.join(FILE), durability));
    mesh.spawn(TaskKind::Background, tidy::run(mesh.clone(), owned.clone()));
    let writer = Processor::new("triples-write")
        .reads("input", Arc::new(write::Writer(owned.clone())))
        .concurrency(128)
        .watches(&[tidy::COLLECTIONS])
        .owner_of("graph");
    let query = Processor::new("triples-query")
        .serves("request", Arc::new(query::Querier(owned.clone())))
        .concurrency(256)
        .owner_of("graph");
    let sparql = Processor::new("sparql-query")
        .serves("request", Arc::new(sparql::Sparql(owned)))
        .concurrency(64)
        .owner_of("graph");
    Ok(vec![writer, query, sparql])
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
