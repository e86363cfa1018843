//! What can go wrong with a question to a model. Of a provider it says what kind of failure it was, never in the
//! provider's words.

use std::time::Duration;

use tg_provider_http::Outage;
use tg_schemas::{Error, ErrorCode, limits};

use crate::engine::context::LEAST;

/// The HTTP status of a refusal; within an answer that has begun there is none.
pub type Status = Option<u16>;

/// A question to a model without an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LlmError {
    /// The question names no operation of this service.
    #[error("operation: must be completion, list-models, which-model or status")]
    Operation,
    /// The question names no operation on chats.
    #[error("operation: must be completion, list-models, route or health")]
    ChatOperation,
    /// The chat has no turns, or some of nobody.
    #[error("messages: must be one or more, each with the role system, user, assistant or tool")]
    Turns,
    /// The chat names too many models.
    #[error("models: must be at most {} names", limits::CHAT_MODELS)]
    Models,
    /// A name of a model is too long.
    #[error("{0}: must be of at most {max} bytes a name", max = limits::MODEL_NAME)]
    ModelName(&'static str),
    /// The question asks for a shape that no answer has.
    #[error("response_format: must be json or absent")]
    ResponseFormat,
    /// The provider cannot enforce a schema while the model may call tools.
    #[error(
        "response_format: this model cannot follow a schema while tools are offered: leave out response_format or tools"
    )]
    SchemaAndTools,
    /// The flow's parameter is not a temperature.
    #[error("temperature: must be a number from 0 to 10")]
    Temperature,
    /// The picture is no picture that models read.
    #[error("image: must be a PNG, JPEG, GIF or WebP picture in base64")]
    NoPicture,
    /// The picture is too large.
    #[error("image: must be of at most 8 MiB")]
    LargePicture,
    /// The picture is of a kind that models do not read.
    #[error("mime_type: must be image/png, image/jpeg, image/gif or image/webp")]
    MediaType,
    /// The picture is of another kind than is said.
    #[error("mime_type: must be that of the image")]
    OtherPicture,
    /// A chat has too many pictures.
    #[error("images: must be at most {} in a chat", limits::CHAT_PICTURES)]
    Pictures,
    /// The pictures of a chat are too large.
    #[error("images: must be of at most 8 MiB together")]
    LargePictures,
    /// Somebody else than the user sends a picture.
    #[error("images: must be in turns of the user")]
    PictureTurn,
    /// The picture is nowhere that pictures are taken from.
    #[error("images: must be data: in base64 or begin with https://, not at a private address")]
    PictureAddress,
    /// Nothing was found at its address, or something else.
    #[error("images: no picture could be fetched from the address")]
    NoPictureThere,
    /// So many pictures are described that there is no memory for one more.
    #[error("too many pictures are being described now: try again")]
    NoRoom,
    /// The builtin reader reads texts only.
    #[error(
        "the builtin extractive reader reads no pictures: set llm.provider to a model that does"
    )]
    ReadsNoPictures,
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
    /// The model can read less at once than anything is done with.
    #[error("context_window: must be at least {LEAST} tokens; the model's has {0}")]
    SmallWindow(u64),
    /// The provider refused the request as malformed or unsuitable.
    #[error("the model provider refused the request as invalid")]
    BadRequest(Status),
    /// The provider cannot be reached or is failing.
    #[error("the model provider cannot be reached or is failing")]
    Unavailable(Outage),
    /// Every backend that has the model failed lately.
    #[error("the model provider failed lately and is left alone for now")]
    Resting(Duration),
    /// No answer in time.
    #[error("the model did not answer in time")]
    Timeout,
    /// The answer is not in the provider's own dialect.
    #[error("the model provider gave an answer that cannot be read")]
    Malformed,
    /// The answer broke off in the middle.
    #[error("the answer of the model was interrupted")]
    BrokenOff,
    /// The answer is longer than what is read of one.
    #[error(
        "the answer of the model is longer than {}",
        limits::human(limits::MODEL_TEXT)
    )]
    LongAnswer,
    /// The provider ended the answer with an error that says nothing more.
    #[error("the model provider ended the answer with an error")]
    Interrupted,
    /// The provider has an answer and does not give it.
    #[error("the model provider withheld the answer because of its content")]
    Withheld,
    /// Cancelled by the asker.
    #[error("cancelled")]
    Cancelled,
    /// The provider cannot do this.
    #[error("the model provider does not offer this operation")]
    Unsupported,
}

impl LlmError {
    /// After how long it may succeed, where that is known.
    pub fn pause(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } => *retry_after,
            Self::Resting(left) => Some(*left),
            _ => None,
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
            Self::Operation
                | Self::ChatOperation
                | Self::Turns
                | Self::Models
                | Self::ModelName(_)
                | Self::ResponseFormat
                | Self::SchemaAndTools
                | Self::Temperature
                | Self::NoPicture
                | Self::LargePicture
                | Self::MediaType
                | Self::OtherPicture
                | Self::Pictures
                | Self::LargePictures
                | Self::PictureTurn
                | Self::PictureAddress
                | Self::NoPictureThere
                | Self::NoRoom
                | Self::ReadsNoPictures
                | Self::SmallWindow(_)
                | Self::Cancelled
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
            Self::Operation | Self::ChatOperation => ErrorCode::BadOperation,
            Self::Turns
            | Self::Models
            | Self::ModelName(_)
            | Self::ResponseFormat
            | Self::SchemaAndTools
            | Self::Temperature
            | Self::NoPicture
            | Self::MediaType
            | Self::Pictures
            | Self::PictureTurn
            | Self::PictureAddress
            | Self::NoPictureThere
            | Self::SmallWindow(_)
            | Self::OtherPicture => ErrorCode::BadRequest,
            Self::RateLimited { .. } => ErrorCode::RateLimited,
            Self::NoRoom => ErrorCode::Busy,
            Self::Resting(_) => ErrorCode::Unavailable,
            Self::Timeout => ErrorCode::Timeout,
            Self::Cancelled => ErrorCode::Cancelled,
            Self::Unsupported | Self::ReadsNoPictures => ErrorCode::NotImplemented,
            Self::TooLong(_) | Self::LargePicture | Self::LargePictures | Self::LongAnswer => {
                ErrorCode::TooLarge
            }
            Self::Quota(_)
            | Self::Auth(_)
            | Self::UnknownModel(_)
            | Self::BadRequest(_)
            | Self::Unavailable(_)
            | Self::Malformed
            | Self::Interrupted
            | Self::Withheld
            | Self::BrokenOff => ErrorCode::Provider,
        }
    }
}

impl From<LlmError> for Error {
    fn from(error: LlmError) -> Self {
        let told = Error::new(error.code(), error.to_string());
        match error.pause() {
            Some(pause) => told.after(pause.as_secs()),
            None => told,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 95: callers of an agent read it as a code of its own.
    #[test]
    fn line_095_a_window_that_is_too_small_is_known_by_its_words() {
        let told = |error: LlmError| tg_compaction::is_small(&Error::from(error).message);
        assert!(told(LlmError::SmallWindow(15_999)));
        assert!(!told(LlmError::Timeout));
    }
}
