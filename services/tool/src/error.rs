//! What can go wrong with a tool call. Never an address, a token or what a server says beyond its own result.

use tg_schemas::{Error, ErrorCode};

/// Most characters of a server's own error text.
const MAX_ERROR: usize = 500;

/// A tool call without a result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The parameters of the call cannot be read.
    #[error("parameters: is not a JSON object: {0}")]
    Parameters(String),
    /// No tool of this name.
    #[error("there is no MCP tool '{0}' in this workspace")]
    Unknown(String),
    /// The tool's row in the configuration cannot be used.
    #[error("MCP tool '{key}': {why}")]
    Row {
        /// The row's key.
        key: String,
        /// The field, and what is wrong with it.
        why: String,
    },
    /// The tool itself says what was wrong, in words meant for a model.
    #[error("{0}")]
    Said(String),
    /// No connection, or no session.
    #[error("the tool's server cannot be reached")]
    Unreachable,
    /// The server let its own time pass.
    #[error("the tool's server did not answer in time")]
    ServerTimeout,
    /// The call's deadline passed.
    #[error("the tool did not answer in time")]
    Timeout,
    /// Cancelled by the asker.
    #[error("cancelled")]
    Cancelled,
    /// TLS cannot be set up on this machine.
    #[error("an HTTP client cannot be made")]
    NoClient,
}

impl ToolError {
    /// An error that a server meant for the model, cut to a bound.
    pub(crate) fn said(text: &str) -> Self {
        let shown: String = text.chars().take(MAX_ERROR).collect();
        match shown.trim().is_empty() {
            true => Self::Said("the tool failed without saying why".to_owned()),
            false => Self::Said(shown),
        }
    }
}

impl From<ToolError> for Error {
    fn from(error: ToolError) -> Self {
        let code = match &error {
            ToolError::Parameters(_) | ToolError::Row { .. } => ErrorCode::BadRequest,
            ToolError::Unknown(_) => ErrorCode::NotFound,
            ToolError::Said(_) | ToolError::Unreachable => ErrorCode::Tool,
            ToolError::ServerTimeout | ToolError::Timeout => ErrorCode::Timeout,
            ToolError::Cancelled => ErrorCode::Cancelled,
            ToolError::NoClient => ErrorCode::Internal,
        };
        Self::new(code, error.to_string())
    }
}
