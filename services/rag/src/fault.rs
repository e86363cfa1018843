//! Errors as clients get them: each service's own type, except where a shared one says more.

use tg_schemas::{Error, ErrorCode};

/// Wire type of GraphRAG's errors.
pub const GRAPH_RAG: &str = "graph-rag-error";
/// Wire type of DocumentRAG's errors.
pub const DOCUMENT_RAG: &str = "document-rag-error";
/// Wire type of the reranker's errors.
pub const RERANKER: &str = "reranker-error";
/// Wire type of errors while a question becomes a query.
pub const NLP_QUERY: &str = "nlp-query-error";
/// Wire type of errors while a question is answered from rows.
pub const STRUCTURED_QUERY: &str = "structured-query-error";

/// The error under the service's own type. What tells an asker what to do keeps its type: mend the request,
/// wait, try again, look at the model.
pub fn typed(kind: &str, error: Error) -> Error {
    let kept = matches!(
        error.code(),
        ErrorCode::BadRequest
            | ErrorCode::TooLarge
            | ErrorCode::Cancelled
            | ErrorCode::Timeout
            | ErrorCode::Interrupted
            | ErrorCode::FlowStopped
            | ErrorCode::Busy
            | ErrorCode::RateLimited
            | ErrorCode::NobodyServes
            | ErrorCode::Unavailable
            | ErrorCode::Provider
    );
    if kept {
        error
    } else {
        Error::typed(kind, error.message)
    }
}

/// Whether the question itself is over, so that nothing else should be tried.
pub fn over(error: &Error) -> bool {
    error.code().is_over()
}
