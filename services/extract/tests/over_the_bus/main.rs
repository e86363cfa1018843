//! The extractors as others meet them: chunks in, triples, contexts and rows out, and replies paid for once.

mod agent;
mod knowledge;
mod ontology;
mod rows;
mod world;
