//! What can go wrong with a chunk, and what becomes of its record: what a person has to put right is dead, everything
//! else is tried again, which the mesh bounds; a model that answers, but with failures, fewer times.

use tg_mesh::{ConsumeError, Cx};
use tg_schemas::{Error, ErrorCode, Retry};

/// Tries of one record at a model that keeps failing, each of which may cost.
const TRIES: u32 = 5;

/// A chunk of which nothing was extracted, or not all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    /// The record does not say which chunk it is.
    #[error("document_id: the chunk has no id")]
    NoId,
    /// Ontologies or tables that the workspace declares cannot be used, or nothing can be made of replies about them.
    #[error("{}", .0.join("; "))]
    Declared(Vec<String>),
    /// The workspace has no such prompt.
    #[error("prompt '{0}' does not exist in this workspace")]
    UnknownPrompt(&'static str),
    /// The workspace has such a prompt, and it cannot be used.
    #[error("prompt '{id}': {why}")]
    BrokenPrompt {
        /// Which.
        id: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The thread that read ontologies died.
    #[error("the ontologies are not loaded yet")]
    NotRead,
    /// No line of a model's reply is of the promised form.
    #[error("{extractor}: the reply of {model} could not be read ({lines} lines): {begins}")]
    Unreadable {
        /// Who asked.
        extractor: &'static str,
        /// Which model replied, if it says so.
        model: String,
        /// How long the reply is.
        lines: usize,
        /// Its first characters.
        begins: String,
    },
    /// A model, or what leads to it, did not reply.
    #[error("{}", .error.message)]
    Asked {
        /// What it said instead.
        error: Error,
        /// Tries of this record, this one included.
        tried: u32,
    },
    /// The store, or a queue that had to be written to.
    #[error("{}", .0.message)]
    Failed(#[from] Error),
}

impl ExtractError {
    /// A failure on the way to a reply about the record of this context.
    pub(crate) fn asked(cx: &Cx, error: Error) -> Self {
        let tried = cx.headers.attempt.unwrap_or(0) + 1;
        Self::Asked { error, tried }
    }

    /// Whether the record will never work, so that it is not tried again.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(ConsumeError::from(self.clone()), ConsumeError::Dead(_))
    }
}

impl From<ExtractError> for Error {
    fn from(error: ExtractError) -> Self {
        let code = match &error {
            ExtractError::Asked { error, .. } | ExtractError::Failed(error) => {
                return error.clone();
            }
            ExtractError::NoId | ExtractError::Declared(_) | ExtractError::BrokenPrompt { .. } => {
                ErrorCode::BadRequest
            }
            ExtractError::UnknownPrompt(_) => ErrorCode::NotFound,
            ExtractError::NotRead => ErrorCode::Internal,
            ExtractError::Unreadable { .. } => ErrorCode::Provider,
        };
        Self::new(code, error.to_string())
    }
}

impl From<ExtractError> for ConsumeError {
    fn from(error: ExtractError) -> Self {
        let ExtractError::Asked { error, tried } = error else {
            return Self::from(Error::from(error));
        };
        match error.code().retry() {
            Retry::Never => Self::Dead(error),
            Retry::MayFailAgain if tried >= TRIES => Self::Dead(error),
            _ => Self::Retry { error, after: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(code: ErrorCode, tried: u32) -> bool {
        let error = Error::new(code, "x");
        let asked = ExtractError::Asked { error, tried };
        matches!(ConsumeError::from(asked), ConsumeError::Dead(_))
    }

    #[test]
    fn a_model_that_keeps_failing_is_asked_so_many_times() {
        assert!(!dead(ErrorCode::Provider, TRIES - 1) && dead(ErrorCode::Provider, TRIES));
        assert!(!dead(ErrorCode::Busy, TRIES) && !dead(ErrorCode::FlowStopped, TRIES));
        assert!(dead(ErrorCode::BadRequest, 1));
    }
}
