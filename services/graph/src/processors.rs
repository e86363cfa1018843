//! The engine as processors of the mesh: thin handlers, one engine for all of them.

use std::sync::Arc;

use tg_collections::{Dropper, Retractor, reaper};
use tg_mesh::{LeasedStore, Mesh, OpenError, Processor};
use tg_schemas::ErrorCode;
use tg_schemas::processors::{sparql_query, triples_query, triples_write};

use crate::error::GraphError;
use crate::handlers::{Neighbours, Querier, Sources, Sparql, Writer};
use crate::options::Options;
use crate::store::embedded::EmbeddedGraph;

/// Where the service keeps its journal below the data directory.
const FILE: &str = "graph.sqlite";
/// Name of the store, by which processes agree on its owner.
const STORE: &str = "graph";

/// Config type that lists collections, with the generation that each is in.
const COLLECTIONS: &str = "collection";

/// The processors that write and query triples, over one file. A process that
/// stands by leaves the file alone.
///
/// Also starts the task that purges what belonged to deleted workspaces. A collection is dropped when its owner asks, and
/// never because its row is not there: a configuration that is older, or lost it, looks the same.
pub fn processors(mesh: &Mesh, options: Options) -> Vec<Processor> {
    let (file, durability) = (options.data_dir.join(FILE), options.durability);
    let (limits, answers) = (options.limits(), options.limits());
    let opened = file.clone();
    let open = move || EmbeddedGraph::open(&opened, durability, limits.clone());
    let owned = LeasedStore::blocking(STORE, open);
    owned.kept_in(file);
    reaper::start(mesh, STORE, owned.clone());
    let writer = Processor::new(triples_write::PROCESSOR)
        .reads(triples_write::INPUT, Arc::new(Writer(owned.clone())))
        .reads(
            triples_write::RETRACT,
            Arc::new(Retractor::new(owned.clone(), ())),
        )
        .serves(triples_write::DROP, Arc::new(Dropper::new(owned.clone())))
        .concurrency(128)
        .watches(&[COLLECTIONS])
        .owns(owned.clone());
    let query = Processor::new(triples_query::PROCESSOR)
        .serves(triples_query::REQUEST, Arc::new(Querier(owned.clone())))
        .serves(
            triples_query::NEIGHBOURS,
            Arc::new(Neighbours(owned.clone())),
        )
        .serves(triples_query::SOURCES, Arc::new(Sources(owned.clone())))
        .concurrency(256)
        .watches(&[COLLECTIONS])
        .owns(owned.clone());
    let sparql = Processor::new(sparql_query::PROCESSOR)
        .serves(
            sparql_query::REQUEST,
            Arc::new(Sparql {
                store: owned.clone(),
                limits: answers,
            }),
        )
        .concurrency(64)
        .watches(&[COLLECTIONS])
        .owns(owned);
    vec![writer, query, sparql]
}

impl From<GraphError> for OpenError {
    fn from(error: GraphError) -> Self {
        match error {
            GraphError::Journal(fault) => fault.into(),
            error => Self::Failed(error.to_wire(ErrorCode::Storage.as_str())),
        }
    }
}
