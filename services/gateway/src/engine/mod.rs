//! What the gateway knows without a bus and without HTTP: both vocabularies, what may be said to clients, a little of a
//! query language. Pure.

#[cfg(test)]
mod fuzz;
pub(crate) mod promql;
pub(crate) mod rdf;
pub(crate) mod scrub;
pub mod translate;
