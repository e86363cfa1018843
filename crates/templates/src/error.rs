//! Why a prompt cannot be rendered, and how it is said to clients.

use tg_schemas::{Error, ErrorCode};

/// A prompt that cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
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
}

impl From<RenderError> for Error {
    fn from(error: RenderError) -> Self {
        let text = error.to_string();
        match error {
            RenderError::NoneConfigured => Error::typed("no-configuration", text),
            RenderError::Unknown(_) => Error::new(ErrorCode::NotFound, text),
            RenderError::Broken { .. } => Error::typed("config-error", text),
            RenderError::Term { .. } => Error::new(ErrorCode::BadRequest, text),
        }
    }
}
