//! RDF store, pattern queries and SPARQL.
//!
//! * [`engine`] has the rules of RDF, files and patterns. Pure.
//! * [`QuadStore`] is what an adapter keeps. The present one, [`EmbeddedGraph`], keeps one dataset per workspace,
//!   collection and generation of its name in memory (oxigraph), with a journal in SQLite that every change is committed
//!   to before it is applied. It knows no bus; the handlers do.
//! * [`processors`] are the hosted processors.
//!
//! A dataset is chosen by name, never filtered out of a larger one.

pub mod engine;
mod error;
mod handlers;
mod options;
mod processors;
pub mod store;

pub use engine::pattern::{Asked, Pattern};
pub use engine::quota::Usage;
pub use engine::{convert, formats};
pub use error::GraphError;
pub use options::{Limits, Options};
pub use oxigraph;
pub use processors::processors;
pub use store::embedded::EmbeddedGraph;
pub use store::embedded::batch::{Batch, Op};
pub use store::embedded::exchange::Import;
pub use store::embedded::scan::Scan;
pub use store::{
    Form, Graphs, Part, QuadStore, SparqlAnswer, SparqlAsk, SparqlParts, TriplePattern, TripleScan,
    Written,
};
pub use tg_collections::{CollectionKey, WriteKind};

/// So that tests of what a query may use see what it uses.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: tg_counted_alloc::Counted<std::alloc::System> =
    tg_counted_alloc::Counted(std::alloc::System);
