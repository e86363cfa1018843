//! Handlers: what reads the chunks of each extractor, and what answers about statements that were not written.

mod agent;
mod knowledge;
mod measure;
mod ontology;
mod rows;
mod violations;

pub(crate) use agent::Agent;
pub(crate) use knowledge::Knowledge;
pub(crate) use measure::Measure;
pub(crate) use ontology::OntologyExtractor;
pub(crate) use rows::RowsOf;
pub(crate) use violations::Violations;
