//! What can go wrong with agents and sessions.

use tg_clients::operations::Refused;
use tg_compaction::is_small;
use tg_schemas::operations::{Failure, FailureCode};
use tg_schemas::{Error, ErrorCode};
use tg_storage::StorageError;

use crate::engine::catalogue::FileError;
use crate::engine::service_kind::ServiceKind;

/// The files of agents cannot be used. For operators, never shown to clients.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct AgentFilesError(pub Vec<FileError>);

/// Why a request of a session is not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionsError {
    /// The request says something that cannot be.
    Invalid(Failure),
    /// No file describes such an agent.
    NoAgent,
    /// The workspace has no such agent.
    NoWorkspaceAgent,
    /// The agent has no such conversation.
    NoConversation,
    /// No flow runs that could answer in conversations.
    NoChat,
    /// The operator names no model that answers in conversations, or lets the workspace use no credential for it.
    NoChatModel,
    /// There is no such template.
    NoTemplate,
    /// The workspace has no such service of this kind.
    NoService(ServiceKind),
    /// An agent of this name is bound to the service.
    ServiceInUse(ServiceKind, String),
    /// Another agent or conversation has the id.
    Taken,
    /// Another session has the id.
    SessionTaken,
    /// The user has no such session, whoever else has.
    NoSession,
    /// The session belongs to another agent.
    OtherAgent,
    /// The message that another one is to follow is not the newest of its user.
    Followed,
    /// The message was not sent before under the id of this request.
    NoRepetition,
    /// Another turn of the session is in progress.
    Busy,
    /// Too many turns wait.
    Crowded,
    /// The session continues in another one.
    Archived(String),
    /// The session was archived, and nothing continues it.
    Gone,
    /// No such flow with an agent runs.
    NoFlow,
    /// The session is archived, or there is nothing in it to sum up.
    NothingToCompact,
    /// The session is never shortened.
    CompactDisabled,
    /// No model summed the session up.
    NotSummedUp,
    /// The shortening cannot be taken back.
    NotUndone,
    /// The chain has no such summary.
    NoSummary,
    /// Nothing of this id is remembered of the user.
    NoMemory,
    /// A later message took the place of this turn.
    Interrupted,
    /// The agent did not answer. Of what it says only the kind is reported, and the pause that it names.
    Unanswered(Error),
    /// The mesh or the store failed.
    Failed(Error),
}

impl From<Failure> for SessionsError {
    fn from(failure: Failure) -> Self {
        Self::Invalid(failure)
    }
}

impl From<Error> for SessionsError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<StorageError> for SessionsError {
    fn from(error: StorageError) -> Self {
        let error = Error::from(error);
        match error.code() {
            // The workspace may keep no more.
            ErrorCode::TooLarge => {
                Self::Invalid(Failure::new(FailureCode::PayloadTooLarge, error.message))
            }
            _ => Self::Failed(error),
        }
    }
}

impl SessionsError {
    /// The code that its client reads.
    pub(crate) fn code(&self) -> &'static str {
        match Refused::<Failure>::from(self.clone()) {
            Refused::Failure(failure) => failure.code.as_str(),
            Refused::Error(error) => error.code().as_str(),
        }
    }
}

/// How a client is told that the agent did not answer: by its kind, and without what a provider said.
fn unanswered(error: &Error) -> Failure {
    if is_small(&error.message) {
        let text = "the model reads too few tokens at once to be asked";
        return Failure::new(FailureCode::ContextWindowTooSmall, text);
    }
    let failure = match error.code() {
        ErrorCode::Timeout => Failure::new(
            FailureCode::UpstreamTimeout,
            "the agent did not answer in time",
        ),
        ErrorCode::NobodyServes | ErrorCode::FlowStopped | ErrorCode::Unavailable => Failure::new(
            FailureCode::AgentUnavailable,
            "the flow has no agent that can be asked at the moment",
        ),
        ErrorCode::Busy | ErrorCode::RateLimited => Failure::new(
            FailureCode::RateLimited,
            "the agent has too many requests; try again later",
        )
        .after(1),
        _ => Failure::new(FailureCode::UpstreamError, "the agent could not answer"),
    };
    match error.pause() {
        Some(seconds) => failure.after(i64::try_from(seconds).unwrap_or(i64::MAX)),
        None => failure,
    }
}

/// Of an agent that leaves its model to the operator.
const NO_MODEL: &str = "llmServiceId: the agent must name an LLM service, as the operator has no model that this workspace may use";

fn no_chat(text: &str) -> Failure {
    Failure::new(FailureCode::ChatDisabled, text)
}

fn no_service(kind: ServiceKind) -> Failure {
    let code = match kind {
        ServiceKind::Llm => FailureCode::LlmServiceNotFound,
        ServiceKind::Reranking => FailureCode::RerankingServiceNotFound,
    };
    let text = format!("{}: there is no such {}", kind.field(), kind.noun());
    Failure::new(code, text)
}

/// An agent of this name names a service.
fn in_use(kind: ServiceKind, agent: &str) -> Failure {
    let field = kind.parameter();
    let text = format!("{field}: the agent '{agent}' names this service");
    Failure::new(FailureCode::Conflict, text)
}

fn no_repetition() -> Failure {
    let text = "repeats: must be false: the request did not send this message before";
    Failure::new(FailureCode::Conflict, text)
}

fn archived(successor: &str) -> Failure {
    let text = "session_id: the session continues in another one";
    Failure::new(FailureCode::SessionArchived, text).continued_in(successor)
}

impl From<SessionsError> for Refused<Failure> {
    fn from(error: SessionsError) -> Self {
        let of = |code, text: &str| Failure::new(code, text);
        Self::Failure(match error {
            SessionsError::Failed(error) => return Self::Error(error),
            SessionsError::Invalid(failure) => failure,
            SessionsError::NoAgent => {
                of(FailureCode::AgentNotFound, "name: there is no such agent")
            }
            SessionsError::NoWorkspaceAgent => of(
                FailureCode::AgentNotFound,
                "agent_id: there is no such agent",
            ),
            SessionsError::NoConversation => of(
                FailureCode::ConversationNotFound,
                "conversation_id: there is no such conversation",
            ),
            SessionsError::NoChat => no_chat("no flow with an agent runs in this workspace"),
            SessionsError::NoChatModel => no_chat(NO_MODEL),
            SessionsError::NoTemplate => of(
                FailureCode::AgentTemplateNotFound,
                "templateId: there is no such template",
            ),
            SessionsError::NoService(kind) => no_service(kind),
            SessionsError::ServiceInUse(kind, agent) => in_use(kind, &agent),
            SessionsError::Taken => of(
                FailureCode::Conflict,
                "another agent, conversation or service has this id",
            ),
            SessionsError::SessionTaken => of(
                FailureCode::Conflict,
                "session_id: another session has this id",
            ),
            SessionsError::NoSession => of(
                FailureCode::SessionNotFound,
                "session_id: there is no such session",
            ),
            SessionsError::OtherAgent => of(
                FailureCode::SessionAgentMismatch,
                "name: the session belongs to another agent",
            ),
            SessionsError::Followed => of(
                FailureCode::Conflict,
                "follows: must be the last one of its session: another one came after it",
            ),
            SessionsError::NoRepetition => no_repetition(),
            SessionsError::Busy => of(
                FailureCode::SessionBusy,
                "session_id: another turn of this session is in progress",
            )
            .after(1),
            SessionsError::Crowded => of(
                FailureCode::RateLimited,
                "too many turns wait in this workspace or for this session; try again later",
            )
            .after(1),
            SessionsError::Archived(successor) => archived(&successor),
            SessionsError::Gone => of(
                FailureCode::SessionGone,
                "session_id: the session was archived, and the one that continued it was deleted",
            ),
            SessionsError::NoFlow => of(
                FailureCode::AgentUnavailable,
                "no flow with an agent runs in this workspace",
            ),
            SessionsError::NothingToCompact => of(
                FailureCode::SessionCompactConflict,
                "session_id: the session is archived, or it has no more messages than stay as they are",
            ),
            SessionsError::CompactDisabled => of(
                FailureCode::SessionCompactDisabled,
                "session_id: the session was created with compact_strategy off",
            ),
            SessionsError::NotSummedUp => of(
                FailureCode::CompactSummaryFailed,
                "no model summed the session up; nothing was changed",
            ),
            SessionsError::NotUndone => of(
                FailureCode::SessionCompactConflict,
                "session_id: the session was not shortened, or the one that continues it has messages of its own",
            ),
            SessionsError::NoSummary => of(
                FailureCode::SummaryNotFound,
                "summary_id: there is no such summary",
            ),
            SessionsError::NoMemory => of(
                FailureCode::MemoryNotFound,
                "memory_id: nothing of this id is remembered",
            ),
            SessionsError::Interrupted => of(
                FailureCode::TurnInterrupted,
                "the turn was cancelled, or a later message of the session took its place",
            ),
            SessionsError::Unanswered(error) => unanswered(&error),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_is_missing_or_in_use_is_named_by_its_kind() {
        let text = |error| match Refused::<Failure>::from(error) {
            Refused::Failure(failure) => (failure.code.as_str(), failure.message),
            Refused::Error(error) => panic!("{error}"),
        };
        for (kind, code, missing, named) in [
            (
                ServiceKind::Llm,
                "llm_service_not_found",
                "llmServiceId: there is no such LLM service",
                "llm_service_id: the agent 'x' names this service",
            ),
            (
                ServiceKind::Reranking,
                "reranking_service_not_found",
                "rerankingServiceId: there is no such reranking service",
                "reranking_service_id: the agent 'x' names this service",
            ),
        ] {
            let told = text(SessionsError::NoService(kind));
            assert_eq!(told, (code, missing.to_owned()));
            let told = text(SessionsError::ServiceInUse(kind, "x".to_owned()));
            assert_eq!(told, ("conflict", named.to_owned()));
        }
    }

    #[test]
    fn an_agent_that_failed_is_reported_by_its_kind_alone() {
        for (code, text) in [
            (ErrorCode::Timeout, "upstream_timeout"),
            (ErrorCode::NobodyServes, "agent_unavailable"),
            (ErrorCode::FlowStopped, "agent_unavailable"),
            (ErrorCode::Busy, "rate_limited"),
            (ErrorCode::Provider, "upstream_error"),
            (ErrorCode::Internal, "upstream_error"),
        ] {
            let told = unanswered(&Error::new(code, "at http://10.0.0.1/v1"));
            assert_eq!(told.code.as_str(), text);
            assert!(!told.message.contains("10.0.0.1"), "{}", told.message);
        }
    }

    /// 95: the model of a flow, which only its agent knows.
    #[test]
    fn line_095_a_model_that_reads_too_little_is_told_as_that() {
        let text = "context_window: must be at least 16000 tokens; the model's has 8000";
        let told = unanswered(&Error::typed("agent-error", text));
        assert_eq!(told.code, FailureCode::ContextWindowTooSmall);
    }

    /// 109: where all models rest.
    #[test]
    fn line_109_the_pause_that_an_agent_names_is_told() {
        for (code, text) in [
            (ErrorCode::Unavailable, "agent_unavailable"),
            (ErrorCode::Busy, "rate_limited"),
            (ErrorCode::RateLimited, "rate_limited"),
        ] {
            let told = unanswered(&Error::new(code, "later").after(90));
            assert_eq!((told.code.as_str(), told.retry_after), (text, Some(90)));
        }
        let told = unanswered(&Error::new(ErrorCode::Busy, "later"));
        assert_eq!(told.retry_after, Some(1));
    }
}
