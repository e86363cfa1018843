//! How operations on agents and sessions fail: a closed list of codes, each with its HTTP status.

use serde::{Deserialize, Serialize};

use super::declare::Refusal;
use crate::error::{Error, ErrorCode};

/// One row per code: code, its text, HTTP status, code of the mesh.
const TABLE: &[(FailureCode, &str, u16, ErrorCode)] = &[
    (
        FailureCode::ValidationError,
        "validation_error",
        400,
        ErrorCode::BadRequest,
    ),
    (
        FailureCode::InvalidHeader,
        "invalid_header",
        400,
        ErrorCode::BadRequest,
    ),
    (
        FailureCode::InvalidCursor,
        "invalid_cursor",
        400,
        ErrorCode::BadRequest,
    ),
    (
        FailureCode::UserIdRequired,
        "user_id_required",
        400,
        ErrorCode::BadRequest,
    ),
    (
        FailureCode::SessionAgentMismatch,
        "session_agent_mismatch",
        400,
        ErrorCode::BadRequest,
    ),
    (
        FailureCode::RecursionDepthExceeded,
        "recursion_depth_exceeded",
        400,
        ErrorCode::BadRequest,
    ),
    (
        FailureCode::Unauthorized,
        "unauthorized",
        401,
        ErrorCode::Unauthenticated,
    ),
    (
        FailureCode::Forbidden,
        "forbidden",
        403,
        ErrorCode::Forbidden,
    ),
    (
        FailureCode::ModelNotAllowed,
        "model_not_allowed",
        403,
        ErrorCode::Forbidden,
    ),
    (FailureCode::NotFound, "not_found", 404, ErrorCode::NotFound),
    (
        FailureCode::MethodNotAllowed,
        "method_not_allowed",
        405,
        ErrorCode::BadOperation,
    ),
    (
        FailureCode::WorkspaceNotFound,
        "workspace_not_found",
        404,
        ErrorCode::NotFound,
    ),
    (
        FailureCode::AgentNotFound,
        "agent_not_found",
        404,
        ErrorCode::NotFound,
    ),
    (
        FailureCode::SessionNotFound,
        "session_not_found",
        404,
        ErrorCode::NotFound,
    ),
    (
        FailureCode::ConversationNotFound,
        "conversation_not_found",
        404,
        ErrorCode::NotFound,
    ),
    (
        FailureCode::ChatDisabled,
        "chat_disabled",
        503,
        ErrorCode::Unavailable,
    ),
    (
        FailureCode::AgentTemplateNotFound,
        "agent_template_not_found",
        404,
        ErrorCode::NotFound,
    ),
    (
        FailureCode::LlmServiceNotFound,
        "llm_service_not_found",
        404,
        ErrorCode::NotFound,
    ),
    (
        FailureCode::RerankingServiceNotFound,
        "reranking_service_not_found",
        404,
        ErrorCode::NotFound,
    ),
    (FailureCode::Conflict, "conflict", 409, ErrorCode::Conflict),
    (
        FailureCode::SessionBusy,
        "session_busy",
        409,
        ErrorCode::Conflict,
    ),
    (
        FailureCode::SessionCompactConflict,
        "session_compact_conflict",
        409,
        ErrorCode::Conflict,
    ),
    (
        FailureCode::SessionCompactDisabled,
        "session_compact_disabled",
        409,
        ErrorCode::Conflict,
    ),
    (
        FailureCode::TurnInterrupted,
        "turn_interrupted",
        409,
        ErrorCode::Conflict,
    ),
    (
        FailureCode::SummaryNotFound,
        "summary_not_found",
        404,
        ErrorCode::NotFound,
    ),
    (
        FailureCode::MemoryNotFound,
        "memory_not_found",
        404,
        ErrorCode::NotFound,
    ),
    (
        FailureCode::LlmProviderUnsupported,
        "llm_provider_unsupported",
        422,
        ErrorCode::BadRequest,
    ),
    (
        FailureCode::LlmCredentialMissing,
        "llm_credential_missing",
        422,
        ErrorCode::BadRequest,
    ),
    (
        FailureCode::CompactSummaryFailed,
        "compact_summary_failed",
        502,
        ErrorCode::Provider,
    ),
    (
        FailureCode::SessionArchived,
        "session_archived",
        308,
        ErrorCode::Conflict,
    ),
    (
        FailureCode::SessionGone,
        "session_gone",
        410,
        ErrorCode::NotFound,
    ),
    (
        FailureCode::PayloadTooLarge,
        "payload_too_large",
        413,
        ErrorCode::TooLarge,
    ),
    (
        FailureCode::ContextWindowTooSmall,
        "context_window_too_small",
        422,
        ErrorCode::TooLarge,
    ),
    (
        FailureCode::RateLimited,
        "rate_limited",
        429,
        ErrorCode::Busy,
    ),
    (
        FailureCode::InternalError,
        "internal_error",
        500,
        ErrorCode::Internal,
    ),
    (
        FailureCode::UpstreamError,
        "upstream_error",
        502,
        ErrorCode::Provider,
    ),
    (
        FailureCode::AgentUnavailable,
        "agent_unavailable",
        503,
        ErrorCode::Unavailable,
    ),
    (
        FailureCode::UpstreamTimeout,
        "upstream_timeout",
        504,
        ErrorCode::Timeout,
    ),
];

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// The request is malformed; the message names the field.
    ValidationError,
    /// A header is malformed; the message names it.
    InvalidHeader,
    /// No page of this listing gave out the cursor.
    InvalidCursor,
    /// The request names no user.
    UserIdRequired,
    /// The session belongs to another agent.
    SessionAgentMismatch,
    /// The request was made by too many agents, one within the other.
    RecursionDepthExceeded,
    /// The caller is unknown.
    Unauthorized,
    /// The caller lacks the capability.
    Forbidden,
    /// The caller's key does not allow the agent's model.
    ModelNotAllowed,
    /// There is no such endpoint.
    NotFound,
    /// The endpoint does not take this method.
    MethodNotAllowed,
    /// There is no such workspace.
    WorkspaceNotFound,
    /// There is no such agent.
    AgentNotFound,
    /// The caller has no such session.
    SessionNotFound,
    /// The agent has no such conversation.
    ConversationNotFound,
    /// Nothing runs that could answer in conversations.
    ChatDisabled,
    /// There is no such template.
    AgentTemplateNotFound,
    /// The workspace has no such LLM service.
    LlmServiceNotFound,
    /// The workspace has no such reranking service.
    RerankingServiceNotFound,
    /// The id is taken.
    Conflict,
    /// Another turn of the session is in progress.
    SessionBusy,
    /// The session is archived, or so short that there is nothing to sum up.
    SessionCompactConflict,
    /// The session is never shortened.
    SessionCompactDisabled,
    /// The turn was cancelled, or a later message of the session took its place.
    TurnInterrupted,
    /// The session has no such summary.
    SummaryNotFound,
    /// Nothing of this id is remembered of the user.
    MemoryNotFound,
    /// No agent of a workspace can be bound to this provider.
    LlmProviderUnsupported,
    /// The LLM service names no credential, or one that is not there.
    LlmCredentialMissing,
    /// No model summed the session up; nothing was changed.
    CompactSummaryFailed,
    /// The session continues in its successor.
    SessionArchived,
    /// The session was archived, and its successors were deleted.
    SessionGone,
    /// The body is larger than the limit.
    PayloadTooLarge,
    /// The model reads too little at a time.
    ContextWindowTooSmall,
    /// Too many requests are in progress.
    RateLimited,
    /// A fault of ours.
    InternalError,
    /// The models failed.
    UpstreamError,
    /// No flow with an agent runs.
    AgentUnavailable,
    /// The agent did not answer in time.
    UpstreamTimeout,
}

impl FailureCode {
    /// Every code.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.0)
    }

    fn row(self) -> &'static (Self, &'static str, u16, ErrorCode) {
        let row = TABLE.iter().find(|row| row.0 == self);
        row.unwrap_or(&TABLE[0])
    }

    /// As clients read it.
    pub fn as_str(self) -> &'static str {
        self.row().1
    }

    /// HTTP status.
    pub fn status(self) -> u16 {
        self.row().2
    }
}

/// An error of an operation on agents or sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failure {
    /// What kind of failure it is.
    pub code: FailureCode,
    /// Text for people.
    pub message: String,
    /// Seconds after which the same request may succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<i64>,
    /// The session in which an archived one continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor_session_id: Option<String>,
}

impl Failure {
    /// A failure with its text.
    pub fn new(code: FailureCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retry_after: None,
            successor_session_id: None,
        }
    }

    /// A field of the request is not as it must be.
    pub fn invalid(field: &str, reason: &str) -> Self {
        Self::new(FailureCode::ValidationError, format!("{field}: {reason}"))
    }

    /// The same request may succeed after so many seconds.
    #[must_use]
    pub fn after(mut self, seconds: i64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// The session continues in this one.
    #[must_use]
    pub fn continued_in(mut self, session: &str) -> Self {
        self.successor_session_id = Some(session.to_owned());
        self
    }
}

impl Refusal for Failure {
    fn code(&self) -> &'static str {
        self.code.as_str()
    }

    fn status(&self) -> u16 {
        self.code.status()
    }

    fn error(&self) -> Error {
        Error::new(self.code.row().3, self.message.clone())
    }

    fn unreadable(message: String) -> Self {
        Self::new(FailureCode::ValidationError, message)
    }

    fn bad_header(message: String) -> Self {
        Self::new(FailureCode::InvalidHeader, message)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_field_that_is_wrong_is_named_first() {
        let named = Failure::new(FailureCode::ValidationError, "name: is required");
        assert_eq!(Failure::invalid("name", "is required"), named);
    }

    #[test]
    fn every_code_has_one_row_and_is_written_as_the_row_says() {
        let written: BTreeSet<String> = FailureCode::all()
            .map(|code| {
                let written = serde_json::to_value(code).unwrap();
                assert_eq!(written, code.as_str());
                written.to_string()
            })
            .collect();
        assert_eq!(written.len(), TABLE.len());
    }
}
