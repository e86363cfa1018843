//! Extraction along ontologies: reading them (JSON form or Turtle), choosing what of them a text is about,
//! and holding a model's reply against them. Pure; embeddings come in as vectors.

mod datatype;
mod describe;
mod element;
mod json;
mod model;
mod prompt;
mod reply;
mod select;
mod turtle;

pub use describe::describe;
pub use element::{Element, Kind, Label, Ontology};
pub use model::Ontologies;
pub use prompt::terms;
pub use reply::{Checked, Rejected, check, says_something};
pub use select::{Index, close, named_in, segments};

#[cfg(test)]
mod tests;
