//! What can go wrong with a question, and how clients get it: under each processor's own type, except where a shared
//! one says more. Never an address, a key or what an endpoint wrote.

use std::fmt;
use std::time::Duration;

use tg_schemas::{Error, ErrorCode};

/// A question without an answer, for a reason of this service; what others say is passed on as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RagError {
    /// A field of the question is wrong.
    #[error("{field}: {why}")]
    Field {
        /// Its name in requests.
        field: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A question says in two ways where to begin.
    #[error("grounding-seeds and graph-seeds are mutually exclusive")]
    BothSeeds,
    /// A field of the question is larger than it may be.
    #[error("{field}: {bound}")]
    TooLarge {
        /// Its name in requests.
        field: &'static str,
        /// How much it is over.
        bound: String,
    },
    /// The question names no operation of this processor.
    #[error("operation: there is no '{0}'")]
    Operation(String),
    /// No schema of this name.
    #[error("schema-name: there is no schema '{0}'")]
    UnknownSchema(String),
    /// The workspace has no schemas at all.
    #[error("this workspace has no schemas of rows")]
    NoSchemas,
    /// None of its schemas is about what is asked.
    #[error("no schema of this workspace fits the question")]
    NoFit,
    /// The model was asked for a query and gave none.
    #[error("the model wrote no query")]
    NoQuery,
    /// The model's answer to a prompt is not the JSON that was asked for.
    #[error("the model's answer to '{0}' is not JSON")]
    NotJson(String),
    /// The model's description of a sample is JSON, and not an object.
    #[error("the model's description is not a JSON object")]
    NotAnObject,
    /// The reranking endpoint did not rank.
    #[error("{0}")]
    Endpoint(EndpointError),
    /// A thread that compared texts died.
    #[error("the texts could not be compared")]
    Compare,
    /// Cancelled by the asker.
    #[error("cancelled")]
    Cancelled,
    /// The question's deadline passed.
    #[error("the deadline has passed")]
    Timeout,
}

/// Why a reranking endpoint did not rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndpointError {
    /// It has too many requests, and said how long to wait, if it did.
    Busy(Option<Duration>),
    /// It refused the request, with this status.
    Refused(String),
    /// It let its own time pass.
    Timeout,
    /// No connection.
    Unreachable,
    /// Its answer ended too soon.
    BrokenOff,
    /// Its answer is not in its dialect.
    Unreadable,
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the reranking endpoint ")?;
        match self {
            Self::Busy(None) => f.write_str("is receiving too many requests"),
            Self::Busy(Some(pause)) => {
                let seconds = pause.as_secs().max(1);
                write!(
                    f,
                    "is receiving too many requests; try again in {seconds} s"
                )
            }
            Self::Refused(status) => write!(f, "refused the request ({status})"),
            Self::Timeout => f.write_str("did not answer in time"),
            Self::Unreachable => f.write_str("cannot be reached"),
            Self::BrokenOff => f.write_str("was interrupted"),
            Self::Unreadable => f.write_str("sent an answer that cannot be read"),
        }
    }
}

impl From<RagError> for Error {
    fn from(error: RagError) -> Self {
        let code = match &error {
            RagError::Endpoint(EndpointError::Busy(_)) => ErrorCode::RateLimited,
            RagError::Endpoint(_) => return Kind::Reranker.error(error.to_string()),
            RagError::NoFit | RagError::NoQuery => return Kind::NlpQuery.error(error.to_string()),
            RagError::Field { .. } | RagError::BothSeeds => ErrorCode::BadRequest,
            RagError::TooLarge { .. } => ErrorCode::TooLarge,
            RagError::Operation(_) => ErrorCode::BadOperation,
            RagError::UnknownSchema(_) | RagError::NoSchemas => ErrorCode::NotFound,
            RagError::NotJson(_) | RagError::NotAnObject => ErrorCode::Provider,
            RagError::Compare => ErrorCode::Internal,
            RagError::Cancelled => ErrorCode::Cancelled,
            RagError::Timeout => ErrorCode::Timeout,
        };
        Self::new(code, error.to_string())
    }
}

/// The processors that have a wire type of errors of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `graph-rag`.
    GraphRag,
    /// `document-rag`.
    DocumentRag,
    /// `reranker`.
    Reranker,
    /// `nlp-query`.
    NlpQuery,
    /// `structured-query`.
    StructuredQuery,
}

impl Kind {
    fn error(self, text: String) -> Error {
        let kind = match self {
            Self::GraphRag => "graph-rag-error",
            Self::DocumentRag => "document-rag-error",
            Self::Reranker => "reranker-error",
            Self::NlpQuery => "nlp-query-error",
            Self::StructuredQuery => "structured-query-error",
        };
        Error::typed(kind, text)
    }

    /// An error as clients of this processor get it. What tells an asker what to do keeps its type: mend the request,
    /// wait, try again, look at the model.
    pub fn of(self, error: impl Into<Error>) -> Error {
        let error = error.into();
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
        match kept {
            true => error,
            false => self.error(error.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_keeps_its_type_where_that_says_what_to_do() {
        let missing = RagError::Field {
            field: "query",
            why: "is required",
        };
        let error = Kind::GraphRag.of(missing);
        assert_eq!(
            (error.code(), error.message.as_str()),
            (ErrorCode::BadRequest, "query: is required")
        );
        let error = Kind::NlpQuery.of(RagError::NoSchemas);
        assert_eq!(error.kind, "nlp-query-error");
        let error = Error::from(RagError::Endpoint(EndpointError::Unreachable));
        assert_eq!(error.kind, "reranker-error");
    }
}
