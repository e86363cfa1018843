//! What can go wrong with a run, and what becomes of it: how a question, a call of a tool or the run ends, and when a
//! step's record is tried again.

use std::time::Duration;

use tg_mesh::ConsumeError;
use tg_schemas::{Error, ErrorCode, limits};
use tg_storage::StorageError;

use crate::engine::decision::{AGENT_ERROR, Ending};

/// A step that somebody else has, or that stumbled, comes back after this at the earliest.
const MOMENT: Duration = Duration::from_secs(1);

/// An error of the agent itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// The question has no text.
    #[error("question: is required")]
    NoQuestion,
    /// The question is too large to travel with every step.
    #[error("question: is larger than {}", limits::human(limits::AGENT_QUESTION))]
    LargeQuestion,
    /// A pattern of the reference that this release does not have.
    #[error("pattern '{0}' is not supported; use 'react'")]
    NotBuilt(String),
    /// A step's record cannot be read.
    #[error("malformed step")]
    MalformedStep,
    /// A step is being taken by another handler.
    #[error("the step is in progress")]
    InProgress,
    /// A step's answer is still with another step.
    #[error("the answer is held by another step")]
    AnswerHeld,
    /// The record of a step that was begun before it was durable was not written.
    #[error("the step was not recorded")]
    NotRecorded,
    /// The end of a run got where it should not.
    #[error("the run's end was not handled")]
    EndNotHandled,
    /// The workspace was deleted while the run was under way.
    #[error("the workspace was deleted")]
    NoWorkspace,
    /// This process is leaving.
    #[error("the process stops")]
    Stopping,
    /// Nobody can tell what the asker heard of an answer that broke off.
    #[error("the answer was interrupted; please ask again")]
    BrokenOff,
    /// Cancelled by the asker.
    #[error("cancelled")]
    Cancelled,
    /// The question's deadline passed.
    #[error("the deadline has passed")]
    Timeout,
    /// The run took as many steps as it may.
    #[error("Too many agent iterations")]
    Iterations,
    /// The model was asked again and again for a reply in the form of a step.
    #[error("the model's replies cannot be read")]
    Unreadable,
    /// The model wants the same again and again.
    #[error("the model keeps repeating the same call of '{0}'")]
    Repeating(String),
    /// A tool that looks things up by name was given none.
    #[error("argument 'name' is required")]
    Name,
    /// A pattern of triples that everything matches.
    #[error("give at least one of 'subject', 'predicate' and 'object'")]
    EmptyPattern,
    /// An argument that has to be an IRI.
    #[error("'{0}' is not an IRI")]
    NotIri(String),
    /// A question to rows was answered with errors only.
    #[error("{0}")]
    Rows(String),
    /// A value of ours cannot be written as JSON.
    #[error("{0}")]
    Json(String),
}

impl From<serde_json::Error> for AgentError {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error.to_string())
    }
}

impl From<AgentError> for Error {
    fn from(error: AgentError) -> Self {
        let code = match &error {
            AgentError::NoQuestion
            | AgentError::MalformedStep
            | AgentError::Name
            | AgentError::EmptyPattern
            | AgentError::NotIri(_) => ErrorCode::BadRequest,
            AgentError::LargeQuestion => ErrorCode::TooLarge,
            AgentError::InProgress
            | AgentError::AnswerHeld
            | AgentError::NotRecorded
            | AgentError::EndNotHandled => ErrorCode::Busy,
            AgentError::NoWorkspace => ErrorCode::NotFound,
            AgentError::Stopping => ErrorCode::Unavailable,
            AgentError::BrokenOff => ErrorCode::Interrupted,
            AgentError::Cancelled => ErrorCode::Cancelled,
            AgentError::Timeout => ErrorCode::Timeout,
            AgentError::Rows(_) => ErrorCode::Tool,
            AgentError::Json(_) => ErrorCode::Internal,
            AgentError::NotBuilt(_)
            | AgentError::Iterations
            | AgentError::Unreadable
            | AgentError::Repeating(_) => return Self::typed(AGENT_ERROR, error.to_string()),
        };
        Self::new(code, error.to_string())
    }
}

impl From<AgentError> for ConsumeError {
    /// What is only too early is tried again in a moment.
    fn from(error: AgentError) -> Self {
        match Self::from(Error::from(error)) {
            Self::Retry { error, .. } => Self::Retry {
                error,
                after: Some(MOMENT),
            },
            dead => dead,
        }
    }
}

/// Why a step does not lead to the next.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The run ends here, without an answer.
    End(Ending),
    /// Something of ours failed: the step is tried again later and continues from its rows.
    Error(Error),
}

impl From<AgentError> for Stop {
    fn from(error: AgentError) -> Self {
        Self::Error(error.into())
    }
}

impl From<StorageError> for Stop {
    fn from(error: StorageError) -> Self {
        tracing::warn!(%error, "the agent's ledger failed");
        Self::Error(error.into())
    }
}

impl From<Stop> for ConsumeError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Error(error) => Self::Retry {
                error,
                after: Some(MOMENT),
            },
            Stop::End(ending) => {
                tracing::error!(
                    reason = ending.reason,
                    error = ending.message,
                    "a run's end was not handled"
                );
                AgentError::EndNotHandled.into()
            }
        }
    }
}
