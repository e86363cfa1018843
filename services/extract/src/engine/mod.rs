//! What a model's reply about a chunk says: triples and contexts of entities, along ontologies where there are some, or
//! rows of tables. Pure.

pub mod definitions;
pub mod found;
pub mod items;
pub mod knowledge;
pub mod names;
pub mod ontology;
pub mod relationships;
pub mod rows;

pub use found::{Found, Source};
