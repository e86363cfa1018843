//! SPARQL: a query is inspected, parsed, bounded and run on a thread of its own, and its results are handed over in
//! small parts. Rows, time, memory and nesting are limited; dropping the answer stops the query.

mod answer;
mod guard;
mod handover;
pub(crate) mod memory;
mod nesting;
mod rewrite;
mod run;
mod shape;
mod start;
mod syntax;
mod texts;

use std::time::Duration;

use tg_schemas::{Term, Triple};
use tokio_util::sync::CancellationToken;

use crate::error::GraphError;

pub use answer::SparqlAnswer;
pub use shape::Form;
pub(crate) use start::start;

/// A query and its limits.
#[derive(Debug, Clone)]
pub struct SparqlAsk {
    /// The text.
    pub query: String,
    /// Most rows or triples.
    pub limit: Option<usize>,
    /// Rows or triples of a part.
    pub batch: usize,
    /// Longest time until the last part is read. The evaluation is also within the engine's own limit.
    pub time: Duration,
    /// Stops it.
    pub cancel: CancellationToken,
}

/// Some results.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Rows, aligned with the variables.
    Rows(Vec<Vec<Option<Term>>>),
    /// Triples of a graph.
    Triples(Vec<Triple>),
    /// Yes or no.
    Ask(bool),
}

/// What the query's thread says.
enum Said {
    Open(Form, Vec<String>),
    /// Results, and the bytes of memory they take.
    Part(Part, usize),
    Fault(GraphError),
    End,
}

#[cfg(test)]
mod tests;
