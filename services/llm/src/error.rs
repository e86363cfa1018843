//! What can go wrong with a question to a model. Of a provider it says what kind of failure it was, never in the
//! provider's words.

use std::time::Duration;

use tg_provider_http::{Again, Outage};
use tg_schemas::{Error, ErrorCode};

/// The HTTP status of a refusal; within an answer that has begun there is none.
pub type Status = Option<u16>;

/// A question to a model without an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LlmError {
    /// The question names no operation of this service.
    #[error("operation: must be completion, list-models, which-model or status")]
    Operation,
    /// The question asks for a shape that no answer has.
    #[error("response_format: must be json or absent")]
    ResponseFormat,
    /// The flow's parameter is not a temperature.
    #[error("temperature: the flow's parameter must be a number from 0 to 10")]
    Temperature,
    /// Too many requests; may work after a pause.
    #[error("the model provider is receiving too many requests")]
    RateLimited {
        /// The pause the provider asked for.
        retry_after: Option<Duration>,
        /// How it said so.
        status: Status,
    },
    /// The account has no credit left; waiting does not help.
    #[error("the account at the model provider has no credit left")]
    Quota(Status),
    /// The key is missing, wrong or not allowed to do this.
    #[error("the model provider did not accept the key")]
    Auth(Status),
    /// The provider does not know the model or the endpoint.
    #[error("the model provider does not know this model; list-models shows what it has")]
    UnknownModel(Status),
    /// The request is longer than the model can read.
    #[error("the request is longer than the model can read")]
    TooLong(Status),
    /// The provider refused the request as malformed or unsuitable.
    #[error("the model provider refused the request as invalid")]
    BadRequest(Status),
    /// The provider cannot be reached or is failing.
    #[error("the model provider cannot be reached or is failing")]
    Unavailable(Outage),
    /// No answer in time.
    #[error("the model did not answer in time")]
    Timeout,
    /// The answer is not in the provider's own dialect.
    #[error("the model provider gave an answer that cannot be read")]
    Malformed,
    /// The answer broke off in the middle.
    #[error("the answer of the model was interrupted")]
    BrokenOff,
    /// Cancelled by the asker.
    #[error("cancelled")]
    Cancelled,
    /// The provider cannot do this.
    #[error("the model provider does not offer this operation")]
    Unsupported,
}

impl LlmError {
    /// Whether the same request may succeed when tried again.
    pub fn again(&self) -> Again {
        match self {
            Self::RateLimited {
                retry_after: Some(asked),
                ..
            } => Again::After(*asked),
            Self::RateLimited { .. } | Self::Unavailable(_) | Self::BrokenOff => Again::Soon,
            _ => Again::Never,
        }
    }

    /// Why the provider is away, or the status that it refused with.
    pub fn outage(&self) -> Option<Outage> {
        match self {
            Self::Unavailable(outage) => Some(*outage),
            Self::RateLimited { status, .. }
            | Self::Quota(status)
            | Self::Auth(status)
            | Self::UnknownModel(status)
            | Self::TooLong(status)
            | Self::BadRequest(status) => status.map(Outage::Refused),
            _ => None,
        }
    }

    /// Whether it is the provider that failed, and not the question or who asked.
    pub fn is_the_providers(&self) -> bool {
        !matches!(
            self,
            Self::Operation | Self::ResponseFormat | Self::Temperature | Self::Cancelled
        )
    }

    /// Whether it says that no question can be answered: the provider is away, or is not asked as it wants to be.
    pub fn is_outage(&self) -> bool {
        matches!(
            self,
            Self::Timeout
                | Self::Quota(_)
                | Self::Auth(_)
                | Self::UnknownModel(_)
                | Self::Unavailable(_)
                | Self::Malformed
                | Self::BrokenOff
        )
    }

    /// The code of the failure.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Operation => ErrorCode::BadOperation,
            Self::ResponseFormat | Self::Temperature => ErrorCode::BadRequest,
            Self::RateLimited { .. } => ErrorCode::RateLimited,
            Self::Timeout => ErrorCode::Timeout,
            Self::Cancelled => ErrorCode::Cancelled,
            Self::Unsupported => ErrorCode::NotImplemented,
            Self::TooLong(_) => ErrorCode::TooLarge,
            Self::Quota(_)
            | Self::Auth(_)
            | Self::UnknownModel(_)
            | Self::BadRequest(_)
            | Self::Unavailable(_)
            | Self::Malformed
            | Self::BrokenOff => ErrorCode::Provider,
        }
    }
}

impl From<LlmError> for Error {
    fn from(error: LlmError) -> Self {
        let mut text = error.to_string();
        if let LlmError::RateLimited {
            retry_after: Some(pause),
            ..
        } = &error
        {
            text += &format!("; try again in {} s", pause.as_secs().max(1));
        }
        Error::new(error.code(), text)
    }
}
