//! What can go wrong with a provider of embeddings. Says what kind of failure it was, never in the
//! provider's words.

use std::time::Duration;

use tg_provider_http::{Again, Cause, HttpError, Outage, Refusal};
use tg_schemas::{Error, ErrorCode};

/// Wire type of faults that have none of their own.
pub const FAULT: &str = "embeddings-error";

/// The HTTP status of a refusal; there is none where this process refused.
pub type Status = Option<u16>;

/// Texts that were not embedded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// A field of the request is not what it should be.
    #[error("{field}: {why}")]
    Field {
        /// Path of the field, e.g. `texts[3]`.
        field: String,
        /// What is wrong with it.
        why: String,
    },
    /// More or longer texts than one request may bring.
    #[error("{0}")]
    TooLarge(String),
    /// The provider does not have the model.
    #[error("model: the embeddings provider does not have this model")]
    UnknownModel(Status),
    /// Too many requests; may work after a pause.
    #[error("the embeddings provider is receiving too many requests")]
    RateLimited {
        /// The pause the provider asked for.
        retry_after: Option<Duration>,
        /// How it said so.
        status: Status,
    },
    /// The key is missing, wrong, without credit or not allowed to do this.
    #[error("the embeddings provider did not accept the key")]
    Auth(Status),
    /// The provider refused the request.
    #[error("the embeddings provider refused the request as invalid")]
    Refused(Status),
    /// The provider cannot be reached or is failing.
    #[error("the embeddings provider cannot be reached or is failing")]
    Unavailable(Outage),
    /// No answer in time.
    #[error("the embeddings provider did not answer in time")]
    Timeout,
    /// The answer is not in the provider's own dialect, or incomplete.
    #[error("the embeddings provider gave an answer that cannot be read")]
    Malformed,
    /// Work on this machine died.
    #[error("the texts could not be embedded")]
    Internal,
}

impl EmbedError {
    /// Why the provider is away, or the status that it refused with.
    pub fn outage(&self) -> Option<Outage> {
        match self {
            Self::Unavailable(outage) => Some(*outage),
            Self::RateLimited { status, .. }
            | Self::UnknownModel(status)
            | Self::Auth(status)
            | Self::Refused(status) => status.map(Outage::Refused),
            _ => None,
        }
    }

    /// Whether it is the provider that failed, and not the question or this machine.
    pub fn is_the_providers(&self) -> bool {
        !matches!(
            self,
            Self::Field { .. } | Self::TooLarge(_) | Self::Internal
        )
    }

    /// Whether the same request may succeed when tried again.
    pub fn again(&self) -> Again {
        match self {
            Self::RateLimited {
                retry_after: Some(asked),
                ..
            } => Again::After(*asked),
            Self::RateLimited { .. } | Self::Unavailable(_) => Again::Soon,
            _ => Again::Never,
        }
    }
}

impl From<HttpError> for EmbedError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Refused(refusal) => Self::from(refusal),
            HttpError::Invalid => Self::Refused(None),
            HttpError::Timeout => Self::Timeout,
            HttpError::Unreachable(cause) => Self::Unavailable(Outage::Unreachable(cause)),
            HttpError::BrokenOff => Self::Unavailable(Outage::Unreachable(Cause::Broken)),
            HttpError::Unreadable => Self::Malformed,
        }
    }
}

impl From<Refusal> for EmbedError {
    fn from(refusal: Refusal) -> Self {
        let retry_after = refusal.retry_after;
        let status = Some(refusal.status);
        match refusal.status {
            401..=403 => Self::Auth(status),
            404 => Self::UnknownModel(status),
            413 => Self::TooLarge("texts: are longer than the embeddings provider reads".into()),
            _ if refusal.is_rate_limit() => Self::RateLimited {
                retry_after,
                status,
            },
            _ if refusal.is_passing() => Self::Unavailable(Outage::Status(refusal.status)),
            _ => Self::Refused(status),
        }
    }
}

impl From<EmbedError> for Error {
    fn from(error: EmbedError) -> Self {
        let code = match &error {
            EmbedError::Field { .. } | EmbedError::UnknownModel(_) => ErrorCode::BadRequest,
            EmbedError::TooLarge(_) => ErrorCode::TooLarge,
            EmbedError::RateLimited { .. } => ErrorCode::RateLimited,
            EmbedError::Unavailable(_) => ErrorCode::Unavailable,
            EmbedError::Timeout => ErrorCode::Timeout,
            EmbedError::Auth(_)
            | EmbedError::Refused(_)
            | EmbedError::Malformed
            | EmbedError::Internal => return Error::typed(FAULT, error.to_string()),
        };
        let mut text = error.to_string();
        if let EmbedError::RateLimited {
            retry_after: Some(pause),
            ..
        } = &error
        {
            text += &format!("; try again in {} s", pause.as_secs().max(1));
        }
        Error::new(code, text)
    }
}
