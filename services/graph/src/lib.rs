//! RDF store, pattern queries and SPARQL.
//!
//! [`Engine`] keeps one dataset per workspace, collection and generation of its name in memory (oxigraph), with a journal in
//! SQLite that every change is committed to before it is applied. It knows no bus; the handlers do.
//! A dataset is chosen by name, never filtered out of a larger one.

mod batch;
mod commit;
pub mod convert;
mod dataset;
mod ended;
mod engine;
mod entry;
mod error;
mod exchange;
pub mod formats;
mod label_cache;
mod limits;
mod load;
mod merge;
mod pattern;
mod permits;
mod quota;
mod reaped;
mod retract;
mod retrieve;
mod scan;
mod service;
mod single;
pub mod sparql;
mod store;
mod tally;

pub use batch::{Batch, Op};
pub use engine::Engine;
pub use error::GraphError;
pub use exchange::Import;
pub use limits::Limits;
pub use oxigraph;
pub use pattern::{Asked, Pattern};
pub use quota::{Quota, Usage};
pub use scan::Scan;
pub use service::processors;
pub use sparql::{Part, SparqlAnswer, SparqlAsk};
pub use tg_collections::{CollectionKey, WriteKind};

/// So that tests of what a query may use see what it uses.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: tg_counted_alloc::Counted<std::alloc::System> =
    tg_counted_alloc::Counted(std::alloc::System);
