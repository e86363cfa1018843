//! Answers from graph, documents and rows.
//!
//! | processor | what it answers |
//! |---|---|
//! | `graph-rag` | a question from the graph around the entities nearest to it |
//! | `document-rag` | a question from the chunks nearest to it |
//! | `reranker` | which texts fit queries best |
//! | `nlp-query` | a question as GraphQL over the workspace's rows |
//! | `structured-query` | a question with the rows that answer it |
//! | `structured-diag` | how data is to be read into rows |
//!
//! A question takes a number of questions to other services that its limits bound and the size of the graph
//! does not. Nothing is kept: what is known of an answer is in its trace and in the library.

mod answers;
mod ask;
mod endpoint;
pub mod engine;
mod error;
#[cfg(test)]
mod fuzz;
mod handlers;
mod options;
mod processors;
mod services;

pub use error::RagError;
pub use options::Options;
pub use processors::processors;
