//! What can go wrong with a prompt, and how it is said to clients. Repeats nothing of a reply.

use tg_schemas::{Error, ErrorCode};

use crate::engine::shape::Misshapen;

/// A prompt without an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// The workspace has no prompts at all.
    #[error("this workspace has no prompts")]
    NoneConfigured,
    /// No such prompt.
    #[error("prompt '{0}' does not exist in this workspace")]
    Unknown(String),
    /// Its configuration is at fault.
    #[error("prompt '{id}': {why}")]
    Broken {
        /// Prompt.
        id: String,
        /// What is wrong with it.
        why: String,
    },
    /// A value of the question is at fault.
    #[error("terms.{name}: is not JSON")]
    Term {
        /// Which value.
        name: String,
    },
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
            PromptError::NoneConfigured => Error::typed("no-configuration", text),
            PromptError::Unknown(_) => Error::new(ErrorCode::NotFound, text),
            PromptError::Broken { .. } => Error::typed("config-error", text),
            PromptError::Term { .. } => Error::new(ErrorCode::BadRequest, text),
            PromptError::Misshapen(_) | PromptError::Empty => Error::new(ErrorCode::Provider, text),
            PromptError::BrokenOff => Error::new(ErrorCode::Interrupted, text),
        }
    }
}
