//! Chunks to triples, entity contexts and rows: the `kg-extract-*` processors.
//!
//! * [`engine`]: definitions and relationships from a model's reply, with labels, provenance and contexts.
//! * [`ontology`]: the same along ontologies, with what does not fit left out and told.
//! * [`rows`]: rows of declared tables.
//! * [`store`]: the ledger of replies. A model's reply is kept before anything follows from it, so a repeat
//!   says the same and costs nothing.
//! * [`processors`]: the processors.
//!
//! The crate never talks to a model; it asks the flow's prompt service, embeddings and agent.

pub mod engine;
pub mod ontology;
mod options;
pub mod rows;
mod service;
pub mod store;

pub use options::Options;
pub use service::processors;
