//! Extraction along ontologies: reading them (JSON form or Turtle), choosing what of them a text is about,
//! and holding a model's reply against them. Pure; embeddings come in as vectors.

mod datatype;
mod describe;
mod json;
mod model;
mod prompt;
mod reply;
mod select;
mod turtle;

pub use describe::describe;
pub use model::{Element, Kind, Label, Ontologies, Ontology};
pub use prompt::terms;
pub use reply::{Checked, check, says_something};
pub use select::{Index, close, named_in, segments};

#[cfg(test)]
mod tests;
