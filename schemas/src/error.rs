//! The one list of errors: code, wire type, HTTP status, CLI exit code.

use serde::{Deserialize, Serialize};

/// What kind of failure an error is. The wire `type` of 2.11 can be finer; see [`Error::kind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// The request is malformed; the message names the field.
    BadRequest,
    /// The operation does not exist.
    BadOperation,
    /// What was asked for does not exist.
    NotFound,
    /// It exists already.
    Conflict,
    /// Who asks is not known.
    Unauthenticated,
    /// Who asks may not.
    Forbidden,
    /// Larger than a limit.
    TooLarge,
    /// A limit on work in progress is reached; try again later.
    Busy,
    /// No process serves this.
    NobodyServes,
    /// The deadline passed.
    Timeout,
    /// Cancelled by the asker.
    Cancelled,
    /// The answer broke off and cannot be completed in the same words.
    Interrupted,
    /// The flow was stopped.
    FlowStopped,
    /// The broker cannot be reached.
    Unavailable,
    /// The model provider says: too many requests.
    RateLimited,
    /// The model provider failed.
    Provider,
    /// A tool failed.
    Tool,
    /// Not built, or not configured.
    NotImplemented,
    /// A store failed.
    Storage,
    /// A fault of ours.
    Internal,
}

/// Whether the same request may succeed when it is made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retry {
    /// What stands in the way passes by itself.
    Passes,
    /// Whoever does the work failed at it: another try may cost as much and fail again, so only a few are made.
    MayFailAgain,
    /// It was refused as things are now, or what it belongs to has ended.
    Refused,
    /// The request itself is at fault and never succeeds.
    Never,
}

/// One row per code: code, default wire type, HTTP status, CLI exit code.
const TABLE: &[(ErrorCode, &str, u16, i32)] = &[
    (ErrorCode::BadRequest, "bad-request", 400, 2),
    (ErrorCode::BadOperation, "bad-operation", 400, 2),
    (ErrorCode::NotFound, "not-found", 404, 3),
    (ErrorCode::Conflict, "conflict", 409, 4),
    (ErrorCode::Unauthenticated, "auth-required", 401, 5),
    (ErrorCode::Forbidden, "access-denied", 403, 5),
    (ErrorCode::TooLarge, "too-large", 413, 2),
    (ErrorCode::Busy, "busy", 429, 6),
    (ErrorCode::NobodyServes, "nobody-serves", 503, 7),
    (ErrorCode::Timeout, "timeout", 504, 8),
    (ErrorCode::Cancelled, "cancelled", 499, 8),
    (ErrorCode::Interrupted, "interrupted", 503, 7),
    (ErrorCode::FlowStopped, "flow-stopped", 503, 7),
    (ErrorCode::Unavailable, "unavailable", 503, 7),
    (ErrorCode::RateLimited, "rate-limited", 429, 6),
    (ErrorCode::Provider, "llm-error", 502, 9),
    (ErrorCode::Tool, "tool-error", 502, 9),
    (ErrorCode::NotImplemented, "not-implemented", 501, 2),
    (ErrorCode::Storage, "storage-error", 500, 1),
    (ErrorCode::Internal, "internal-error", 500, 1),
];

impl ErrorCode {
    /// Every code, in table order.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.0)
    }

    fn row(self) -> &'static (ErrorCode, &'static str, u16, i32) {
        TABLE
            .iter()
            .find(|row| row.0 == self)
            .unwrap_or(&TABLE[TABLE.len() - 1])
    }

    /// Default wire type; also the metric label.
    pub fn as_str(self) -> &'static str {
        self.row().1
    }

    /// HTTP status where a endpoint answers with a status.
    pub fn status(self) -> u16 {
        self.row().2
    }

    /// Exit code of `tg` commands.
    pub fn exit_code(self) -> i32 {
        self.row().3
    }

    /// Whether the same request may succeed when sent again at once: what [`Retry::Passes`] without a store that
    /// failed.
    pub fn is_transient(self) -> bool {
        self.retry() == Retry::Passes && self != Self::Storage
    }

    /// Whether a request that failed so is worth another try. The only place that answers this.
    pub fn retry(self) -> Retry {
        match self {
            Self::Busy
            | Self::NobodyServes
            | Self::Timeout
            | Self::Unavailable
            | Self::RateLimited
            | Self::Storage => Retry::Passes,
            Self::Provider | Self::Tool | Self::Internal | Self::Interrupted => Retry::MayFailAgain,
            Self::Conflict
            | Self::Unauthenticated
            | Self::Forbidden
            | Self::Cancelled
            | Self::FlowStopped => Retry::Refused,
            Self::BadRequest
            | Self::BadOperation
            | Self::NotFound
            | Self::TooLarge
            | Self::NotImplemented => Retry::Never,
        }
    }

    /// Whether the question that failed so is over itself, so that nothing else is to be tried for it.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Cancelled | Self::Timeout | Self::FlowStopped)
    }

    /// The code behind a wire type, also of types that only one service uses.
    pub fn from_wire(kind: &str) -> Self {
        if let Some(row) = TABLE.iter().find(|row| row.1 == kind) {
            return row.0;
        }
        match kind {
            "invalid-argument" | "request-error" | "flow-error" | "sparql-parse-error"
            | BAD_CONTENT => Self::BadRequest,
            "config-error" => Self::Storage,
            "duplicate" => Self::Conflict,
            "auth-failed" => Self::Unauthenticated,
            "too-many-requests" => Self::Busy,
            "operation-not-permitted" => Self::Forbidden,
            _ => Self::Internal,
        }
    }
}

/// Wire type of what a document, or a row that people load, lacks: no fault of the system, and the same again never
/// succeeds.
pub const BAD_CONTENT: &str = "bad-content";

/// How a message ends that names a pause: text before and behind the seconds.
const AFTER: &str = "; try again in ";
const SECONDS: &str = " s";

/// An error as every response body carries it: `{"type", "message"}`.
///
/// The message is shown to clients: it never holds names of queues or hosts, paths, provider bodies
/// or another tenant's names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default, thiserror::Error)]
#[serde(default)]
#[error("{kind}: {message}")]
pub struct Error {
    /// Wire type, e.g. `flow-error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Text for people.
    pub message: String,
}

impl Error {
    /// An error with the default wire type of its code.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            kind: code.as_str().to_owned(),
            message: message.into(),
        }
    }

    /// An error with a service's own wire type, e.g. `flow-error`.
    pub fn typed(kind: &str, message: impl Into<String>) -> Self {
        Self {
            kind: kind.to_owned(),
            message: message.into(),
        }
    }

    /// The code behind the wire type.
    pub fn code(&self) -> ErrorCode {
        ErrorCode::from_wire(&self.kind)
    }

    /// The same error, which names the seconds after which the request may succeed.
    #[must_use]
    pub fn after(self, seconds: u64) -> Self {
        let message = format!("{}{AFTER}{}{SECONDS}", self.message, seconds.max(1));
        Self { message, ..self }
    }

    /// The seconds that it names. Of other errors than those that may pass the text says nothing: callers may have written it.
    pub fn pause(&self) -> Option<u64> {
        let may_pass = matches!(
            self.code(),
            ErrorCode::Busy | ErrorCode::RateLimited | ErrorCode::Unavailable
        );
        if !may_pass {
            return None;
        }
        let (_, named) = self.message.rsplit_once(AFTER)?;
        named.strip_suffix(SECONDS)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_read_as_it_is_written() {
        let busy = || Error::new(ErrorCode::Busy, "too many");
        assert_eq!(busy().pause(), None);
        let paused = busy().after(7);
        assert_eq!(paused.message, "too many; try again in 7 s");
        assert_eq!(paused.pause(), Some(7));
        assert_eq!(busy().after(0).pause(), Some(1));
        let other = Error::new(ErrorCode::Busy, "x; try again in a while");
        assert_eq!(other.pause(), None);
        for code in ErrorCode::all() {
            let named = Error::new(code, "no graph named x").after(7).pause();
            let may_pass = [
                ErrorCode::Busy,
                ErrorCode::RateLimited,
                ErrorCode::Unavailable,
            ];
            assert_eq!(named.is_some(), may_pass.contains(&code), "{code:?}");
        }
    }

    #[test]
    fn wire_types_are_unique_and_round_trip() {
        for code in ErrorCode::all() {
            assert_eq!(ErrorCode::from_wire(code.as_str()), code);
            assert!(code.status() >= 400);
            assert_eq!(
                code.is_transient(),
                code.exit_code() >= 6 && code.retry() == Retry::Passes
            );
        }
    }
}
