//! What can go wrong with a run, and what becomes of it: how a question, a call of a tool or the run ends, and when a
//! step's record is tried again.

use std::time::Duration;

use tg_mesh::ConsumeError;
use tg_schemas::{Error, ErrorCode, limits};
use tg_storage::StorageError;

use crate::engine::decision::{AGENT_ERROR, Ending};
use crate::engine::guards::Exhausted;

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
    /// None of the subagents found anything.
    #[error("no subagent found anything: {0}")]
    NoFinding(String),
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
    /// It is unknown how much of an interrupted answer the caller got.
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
    /// The model answered with nothing.
    #[error("the model gave an empty answer")]
    NoAnswer,
    /// A tool that looks things up by name was given none.
    #[error("argument 'name' is required")]
    Name,
    /// A pattern of triples that everything matches.
    #[error("give at least one of 'subject', 'predicate' and 'object'")]
    EmptyPattern,
    /// The question names a pattern that there is not: those that there are.
    #[error("pattern: must be one of {0}, or empty")]
    UnknownPattern(String),
    /// The question names too many models, or one with a long name.
    #[error(
        "model, models: must be at most {} names of at most {} bytes",
        limits::CHAT_MODELS,
        limits::MODEL_NAME
    )]
    Models,
    /// The workspace's own budgets cannot be read: why.
    #[error("agent/budget: {0}")]
    Budget(String),
    /// Calls to be counted are too many, none, or have no ids.
    #[error("calls: must be 1 to {} calls, each with an id", limits::USAGE_CALLS)]
    Calls,
    /// One call is reserved at a time.
    #[error("calls: must be one call")]
    OneCall,
    /// An argument that has to be an IRI.
    #[error("'{0}' is not an IRI")]
    NotIri(String),
    /// A question to rows was answered with errors only.
    #[error("{0}")]
    Rows(String),
    /// The flow has nobody who describes pictures.
    #[error("this flow has no service that describes pictures")]
    NoPictures,
    /// A document is no picture.
    #[error("the document is not a picture: it is '{0}'")]
    NoPicture(String),
    /// It is a picture that is too large to be looked at.
    #[error("the picture is larger than {} MiB", tg_schemas::limits::PICTURE >> 20)]
    LargePicture,
    /// A tool that is no question to another service.
    #[error("the tool asks no service")]
    NotAsked,
    /// A replayed run is not the one that was recorded, or the record does not reach any further.
    #[error("{0}")]
    Differs(String),
    /// What a run summed up is not made again before the run is over.
    #[error("the run is under way: its summaries can be made again when it is over")]
    UnderWay,
    /// As many summaries of the same steps are kept as may be.
    #[error("the summary was made again as often as is kept")]
    Remade,
    /// The model that is to sum up reads too little.
    #[error("model: reads too little to sum these steps up")]
    SmallModel,
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
            | AgentError::UnknownPattern(_)
            | AgentError::Models
            | AgentError::Budget(_)
            | AgentError::Calls
            | AgentError::OneCall
            | AgentError::SmallModel
            | AgentError::NotIri(_) => ErrorCode::BadRequest,
            AgentError::LargeQuestion => ErrorCode::TooLarge,
            AgentError::InProgress
            | AgentError::AnswerHeld
            | AgentError::NotRecorded
            | AgentError::EndNotHandled => ErrorCode::Busy,
            AgentError::NoWorkspace => ErrorCode::NotFound,
            AgentError::NoPictures => ErrorCode::NotImplemented,
            AgentError::NoPicture(_) => ErrorCode::BadRequest,
            AgentError::LargePicture => ErrorCode::TooLarge,
            AgentError::Stopping => ErrorCode::Unavailable,
            AgentError::BrokenOff => ErrorCode::Interrupted,
            AgentError::Cancelled => ErrorCode::Cancelled,
            AgentError::Timeout => ErrorCode::Timeout,
            AgentError::Rows(_) => ErrorCode::Tool,
            AgentError::Differs(_) | AgentError::UnderWay | AgentError::Remade => {
                ErrorCode::Conflict
            }
            AgentError::Json(_) => ErrorCode::Internal,
            AgentError::NoFinding(_)
            | AgentError::Iterations
            | AgentError::Unreadable
            | AgentError::NotAsked
            | AgentError::NoAnswer => return Self::typed(AGENT_ERROR, error.to_string()),
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
    /// It does not fit a budget to go on: the run ends with the best that it has.
    Spent(Exhausted),
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
            Stop::Spent(over) => {
                tracing::error!(why = over.why, "the end of a budget was not handled");
                AgentError::EndNotHandled.into()
            }
        }
    }
}
