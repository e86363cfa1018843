//! Handlers: one file per processor.

mod document_rag;
mod graph_rag;
mod nlp_query;
mod reranker;
mod structured_diag;
mod structured_query;

pub(crate) use document_rag::DocumentRag;
pub(crate) use graph_rag::GraphRag;
pub(crate) use nlp_query::Nlp;
pub(crate) use reranker::Reranker;
pub(crate) use structured_diag::Diagnosis;
pub(crate) use structured_query::Structured;

use crate::error::RagError;

/// The prompt by which a model chooses among schemas.
const SELECT: &str = "schema-selection";

/// A field without which nothing can be answered.
fn required(field: &'static str) -> RagError {
    let why = "is required";
    RagError::Field { field, why }
}
