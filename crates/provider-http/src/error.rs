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

/// What was too much for a server that may take less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// The number of texts, which holds for every call.
    Number,
    /// How long they are together, which holds for this one.
    Size,
}

/// Words of servers that take fewer texts, or fewer tokens, in one call.
const TOO_MANY: [&str; 5] = [
    "batch",
    "too many inputs",
    "number of texts",
    "array too long",
    "per request",
];

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

    /// Whether there was too much in one call, so that the server may take a part of it.
    pub fn excess(&self) -> Option<Excess> {
        if !matches!(self.status, 400 | 413 | 422) {
            return None;
        }
        let words = String::from_utf8_lossy(&self.body).to_lowercase();
        let says = TOO_MANY.iter().any(|said| words.contains(said));
        match (says, words.contains("token")) {
            (true, false) => Some(Excess::Number),
            (true, true) => Some(Excess::Size),
            // A body that is too long for the server or a proxy. With tokens it is about one text.
            (false, false) => (self.status == 413).then_some(Excess::Size),
            (false, true) => None,
        }
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
    fn servers_say_that_they_take_less_at_once() {
        let excess = |status, said: &str| {
            let refusal = Refusal {
                status,
                retry_after: None,
                body: said.as_bytes().to_vec(),
            };
            refusal.excess()
        };
        for (status, said) in [
            (413, "batch size 100 > maximum allowed batch size 32"),
            (400, "Value error, batch size is invalid"),
            (400, "Too many inputs. The max number of inputs is 16"),
            (422, "total number of texts must be at most 96"),
            (
                400,
                "array too long. Expected an array with maximum length 2048",
            ),
        ] {
            assert_eq!(excess(status, said), Some(Excess::Number), "{said}");
        }
        for (status, said) in [
            (413, "length limit exceeded"),
            (400, "Too many tokens in batch"),
            (
                400,
                "Requested 312000 tokens, max 300000 tokens per request",
            ),
        ] {
            assert_eq!(excess(status, said), Some(Excess::Size), "{said}");
        }
        for (status, said) in [
            (413, "`inputs` must have less than 512 tokens. Given: 600"),
            (400, "input cannot be an empty string"),
            (500, "batch size"),
            (429, "too many inputs"),
        ] {
            assert_eq!(excess(status, said), None, "{said}");
        }
    }

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
