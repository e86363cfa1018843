//! SPARQL: a query is inspected, parsed, bounded and run on a thread of its own, and its results are handed over in
//! small parts. Rows, time, memory and nesting are limited; dropping the answer stops the query.

mod answer;
pub(crate) mod bounded;
mod chosen;
pub(crate) mod guard;
mod handover;
pub(crate) mod memory;
mod nesting;
mod rewrite;
mod run;
mod said;
mod shape;
mod start;
mod syntax;
mod texts;
pub(crate) mod turns;

pub(crate) use start::start;

#[cfg(test)]
mod tests;
