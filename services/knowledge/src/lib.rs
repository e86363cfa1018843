//! Knowledge cores: what was learned from a document, kept as a thing of its own that can be taken from one
//! system to another.
//!
//! | processor | serves or reads | what it does |
//! |---|---|---|
//! | `knowledge` | `knowledge` per workspace | lists, hands out, takes in, loads, unloads and deletes cores |
//! | `kg-store` | `triples-input`, `graph-embeddings-input` per flow | keeps what passes in the core of its document |
//!
//! A core is a set of *pieces*: triples, vectors of entities or vectors of chunks, cut to a bounded size and
//! told apart by their content, so that what comes again doubles nothing. All of it is in one SQLite file
//! with one owner. The documents of a core are the library's: they are asked for and handed over there.
//!
//! Nothing here belongs to a collection: deleting one leaves its cores alone. Nothing is held whole in
//! memory but single pieces.

mod engine;
mod error;
mod flow;
mod handlers;
mod library;
mod load;
mod options;
mod processors;
mod store;

pub use options::Options;
pub use processors::processors;
pub use store::sqlite::ONE_WORKSPACE;
