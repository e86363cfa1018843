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

use crate::error::GraphError;
use crate::store::{Form, Part, SparqlAnswer, SparqlAsk};

pub(crate) use start::start;

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
