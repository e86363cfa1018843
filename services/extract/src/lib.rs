//! Chunks to triples, entity contexts and rows: the `kg-extract-*` processors.
//!
//! * [`engine`]: definitions and relationships from a model's reply, with labels, provenance and contexts;
//!   [`engine::ontology`] the same along ontologies, with what does not fit left out and reported; [`engine::rows`] rows of
//!   declared tables.
//! * [`store`]: the ledger of replies. A model's reply is kept before anything follows from it, so a repeat
//!   says the same and costs nothing.
//! * [`processors`]: the processors.
//!
//! The crate never talks to a model; it asks the flow's prompt service, embeddings and agent.

mod chunk;
pub mod engine;
mod error;
mod handlers;
mod ontologies;
mod options;
mod processors;
mod replies;
pub mod store;
mod write;

pub use error::ExtractError;
pub use options::Options;
pub use processors::processors;
