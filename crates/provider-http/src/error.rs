//! What can go wrong with a server of others. Says what kind of failure it was; what the server wrote stays
//! inside, for those who look in it for known words.

use std::fmt;
use std::time::Duration;

use crate::backoff::Again;
use crate::outage::Cause;

/// No client can be made: neither with the machine's certificates nor with those compiled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no HTTP client can be made for it")]
pub struct NoClient;

/// A request that brought no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The request cannot be sent as it is: its address or a header is malformed.
    #[error("the request is malformed")]
    Invalid,
    /// No connection, or it broke before the answer began.
    #[error("the server cannot be reached ({0})")]
    Unreachable(Cause),
    /// Nothing came for as long as the client waits.
    #[error("the server did not answer in time")]
    Timeout,
    /// The answer ended before it was whole.
    #[error("the answer was interrupted")]
    BrokenOff,
    /// The answer is longer than the client reads, or is not what was asked for.
    #[error("the answer cannot be read")]
    Unreadable,
    /// Another status than success.
    #[error("the server refused the request ({0})")]
    Refused(Refusal),
}

impl HttpError {
    /// Whether the same request may succeed when it is sent again.
    pub fn again(&self) -> Again {
        match self {
            Self::Unreachable(_) | Self::BrokenOff => Again::Soon,
            Self::Refused(refusal) => refusal.again(),
            Self::Invalid | Self::Timeout | Self::Unreadable => Again::Never,
        }
    }

    /// What a failure of the transport means; `otherwise` when it is nothing more special.
    pub(crate) fn of(error: &reqwest::Error, otherwise: Self) -> Self {
        if error.is_builder() {
            Self::Invalid
        } else if error.is_timeout() && !error.is_connect() {
            Self::Timeout
        } else {
            otherwise
        }
    }
}

/// A refused request. Prints without what the server wrote.
#[derive(Clone, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status.
    pub status: u16,
    /// The pause that the server asks for.
    pub retry_after: Option<Duration>,
    /// The beginning of what the server wrote; never shown to anybody.
    pub body: Vec<u8>,
}

impl Refusal {
    /// Whether there were too many requests: 429, or a status of overload that asks for a pause.
    pub fn is_rate_limit(&self) -> bool {
        match self.status {
            429 => true,
            503 | 529 => self.retry_after.is_some(),
            _ => false,
        }
    }

    /// Whether the server is failing for now.
    pub fn is_passing(&self) -> bool {
        matches!(self.status, 408 | 409 | 500..=599)
    }

    fn again(&self) -> Again {
        match self.retry_after {
            Some(asked) if self.is_rate_limit() => Again::After(asked),
            _ if self.is_rate_limit() || self.is_passing() => Again::Soon,
            _ => Again::Never,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP {}", self.status)
    }
}

impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_decide_whether_to_try_again() {
        let again = |status, seconds: Option<u64>| {
            let refusal = Refusal {
                status,
                retry_after: seconds.map(Duration::from_secs),
                body: b"hidden words".to_vec(),
            };
            let error = HttpError::Refused(refusal);
            assert!(!format!("{error} {error:?}").contains("hidden"));
            error.again()
        };
        assert_eq!(again(429, None), Again::Soon);
        assert_eq!(again(429, Some(7)), Again::After(Duration::from_secs(7)));
        assert_eq!(again(503, Some(7)), Again::After(Duration::from_secs(7)));
        assert_eq!(again(503, None), Again::Soon);
        assert_eq!(again(500, Some(7)), Again::Soon, "no status of overload");
        assert_eq!(again(401, Some(7)), Again::Never);
        assert_eq!(HttpError::Timeout.again(), Again::Never);
        assert_eq!(HttpError::BrokenOff.again(), Again::Soon);
    }
}
