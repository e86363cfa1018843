//! Handlers: what reads the chunks of each extractor.

mod agent;
mod knowledge;
mod ontology;
mod rows;

pub(crate) use agent::Agent;
pub(crate) use knowledge::Knowledge;
pub(crate) use ontology::OntologyExtractor;
pub(crate) use rows::RowsOf;
