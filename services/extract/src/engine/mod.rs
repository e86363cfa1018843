//! What a model's reply about a chunk says, as triples and contexts of entities. Pure.

pub mod definitions;
pub mod found;
pub mod items;
pub mod knowledge;
pub mod names;
pub mod relationships;

pub use found::{Found, Source};
