//! What is wrong with a request. What becomes of a message is no error here: its sender is notified by a message.

use tg_schemas::{Error, ErrorCode};

/// Wire type of the reply to a sender from outside whose message was not processed.
const HUH: &str = "request-error";

/// Why a request is not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThreadsError {
    /// No such operation.
    #[error(
        "operation: must be send-message, list-listeners, list-refused-listeners, close-thread or show-thread"
    )]
    Operation,
    /// No such flow.
    #[error("flow: there is no flow '{0}'")]
    Flow(String),
    /// The message was not processed, whatever the cause.
    #[error("{}", tg_threads::HUH)]
    Huh,
    /// No such thread that is live.
    #[error("thread: there is no live thread of this id")]
    Thread,
    /// More came back than one answer holds.
    #[error("the messages are more than one answer holds; ask with 'streaming'")]
    Large,
    /// No room.
    #[error("there are too many messages and threads at once, try again later")]
    Busy,
}

impl From<ThreadsError> for Error {
    fn from(error: ThreadsError) -> Self {
        let code = match &error {
            ThreadsError::Operation => ErrorCode::BadOperation,
            ThreadsError::Flow(_) | ThreadsError::Thread => ErrorCode::NotFound,
            ThreadsError::Huh => return Self::typed(HUH, error.to_string()),
            ThreadsError::Large => ErrorCode::TooLarge,
            ThreadsError::Busy => ErrorCode::Busy,
        };
        Self::new(code, error.to_string())
    }
}
