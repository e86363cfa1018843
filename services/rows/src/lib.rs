//! Typed rows and GraphQL over them: `rows-write` and `rows-query`.
//!
//! * [`engine::value`] turns the texts that records carry into typed values. Pure.
//! * [`engine::select`] is a question over one table: conditions, order, limit. Pure.
//! * [`store`] is what an adapter keeps; the present one keeps each table of a collection as an SQLite table with typed
//!   columns and real indexes. A row is one row whatever it is indexed by: its key is the primary key, or all its
//!   values.
//! * [`graphql`] builds a schema from the configured tables, and runs queries over a store. A table that
//!   cannot be part of it is left out by itself.
//! * [`processors`] are the hosted processors.
//!
//! Data is selected by [`CollectionKey`], a struct; no name is ever made of two others.

pub mod engine;
mod error;
pub mod graphql;
mod handlers;
mod options;
mod processors;
pub mod store;

pub use error::RowsError;
pub use options::Options;
pub use processors::processors;
pub use tg_collections::CollectionKey;
