//! What can go wrong with a reply to a prompt, and how it is said to clients. Repeats nothing of a reply.

use tg_schemas::{Error, ErrorCode};

use crate::engine::shape::Misshapen;

/// A prompt without an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// The model's reply does not have the promised shape, twice.
    #[error(transparent)]
    Misshapen(#[from] Misshapen),
    /// The model's reply has no text; callers of the reference crash on an empty one.
    #[error("the model gave an empty answer")]
    Empty,
    /// The model's reply ended without its last part.
    #[error("the model's answer was interrupted")]
    BrokenOff,
}

impl From<PromptError> for Error {
    fn from(error: PromptError) -> Self {
        let text = error.to_string();
        match error {
            PromptError::Misshapen(_) | PromptError::Empty => Error::new(ErrorCode::Provider, text),
            PromptError::BrokenOff => Error::new(ErrorCode::Interrupted, text),
        }
    }
}
