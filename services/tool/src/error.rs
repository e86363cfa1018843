//! What can go wrong with a tool call. Never an address, a token or what a server says beyond its own result.

use tg_provider_http::Reach;
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
    /// Each user has a token for the server, and whoever asks has none.
    #[error("MCP tool '{0}': the user who asks has no token for its server")]
    NoToken(String),
    /// The tool itself says what was wrong, in words meant for a model.
    #[error("{0}")]
    Said(String),
    /// No connection, or no session.
    #[error("the tool's server cannot be reached")]
    Unreachable,
    /// Its address is private, and the service asks none of those.
    #[error("the tool's server is at a private address, which is not allowed here")]
    Private,
    /// Its address is one of a link, or of a cloud's metadata.
    #[error("the tool's server is at a link-local or metadata address, which is never asked")]
    OfLink,
    /// It is a program that the settings do not list for this workspace.
    #[error(
        "MCP tool '{key}': server: there is no '{name}' among those of this system (tool.mcp_servers)"
    )]
    Unlisted {
        /// The row's key.
        key: String,
        /// The program's name.
        name: String,
    },
    /// As many processes as there may be are in use.
    #[error("too many servers of tools are in use")]
    Busy,
    /// What was asked for is not known.
    #[error("operation: '{0}' is not known")]
    Operation(String),
    /// What was asked for is not there.
    #[error("the tool's server does not have it")]
    NotThere,
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
    /// What a server's address is that is not within reach.
    pub(crate) fn denied(reach: Reach) -> Self {
        match reach {
            Reach::Public | Reach::Outward => Self::Private,
            Reach::Anywhere | Reach::BeyondLink => Self::OfLink,
        }
    }

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
            ToolError::Operation(_) => ErrorCode::BadOperation,
            ToolError::Unknown(_) | ToolError::Unlisted { .. } => ErrorCode::NotFound,
            ToolError::NoToken(_) => ErrorCode::Forbidden,
            ToolError::Busy => ErrorCode::Busy,
            ToolError::Said(_)
            | ToolError::Unreachable
            | ToolError::Private
            | ToolError::OfLink
            | ToolError::NotThere => ErrorCode::Tool,
            ToolError::ServerTimeout | ToolError::Timeout => ErrorCode::Timeout,
            ToolError::Cancelled => ErrorCode::Cancelled,
            ToolError::NoClient => ErrorCode::Internal,
        };
        Self::new(code, error.to_string())
    }
}
