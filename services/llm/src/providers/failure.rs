//! Reading what a provider's refusal means. The body is looked at for known words only; none of it
//! leaves this file.

use serde_json::Value;
use tg_compaction::is_overflow;
use tg_provider_http::{HttpError, Outage, Refusal};

use crate::error::LlmError;

/// A refused request.
#[derive(Debug, PartialEq)]
pub(super) struct Failure {
    pub(super) error: LlmError,
    /// Whether the temperature was the reason.
    pub(super) about_temperature: bool,
}

impl From<HttpError> for Failure {
    fn from(error: HttpError) -> Self {
        let error = match error {
            HttpError::Refused(refusal) => return classify(&refusal),
            HttpError::Invalid => LlmError::BadRequest(None),
            HttpError::Unreachable(cause) => LlmError::Unavailable(Outage::Unreachable(cause)),
            HttpError::Timeout => LlmError::Timeout,
            HttpError::BrokenOff => LlmError::BrokenOff,
            HttpError::Unreadable => LlmError::Malformed,
        };
        Self {
            error,
            about_temperature: false,
        }
    }
}

impl From<HttpError> for LlmError {
    fn from(error: HttpError) -> Self {
        Failure::from(error).error
    }
}

/// What the status and the body of a refusal mean.
fn classify(refusal: &Refusal) -> Failure {
    let told = ErrorBody::read(&refusal.body);
    let retry_after = refusal.retry_after;
    let status = Some(refusal.status);
    let error = match refusal.status {
        _ if told.names(&["insufficient_quota", "billing_hard_limit_reached"]) => {
            LlmError::Quota(status)
        }
        _ if told.names(&["invalid_api_key", "account_deactivated"]) => LlmError::Auth(status),
        401 | 403 => LlmError::Auth(status),
        402 => LlmError::Quota(status),
        404 => LlmError::UnknownModel(status),
        413 => LlmError::TooLong(status),
        _ if refusal.is_rate_limit() => LlmError::RateLimited {
            retry_after,
            status,
        },
        _ if refusal.is_passing() => LlmError::Unavailable(Outage::Status(refusal.status)),
        _ if told.names(&["model_not_found"]) => LlmError::UnknownModel(status),
        _ if told.names(&["context_length_exceeded", "string_above_max_length"])
            || is_overflow(&told.message) =>
        {
            LlmError::TooLong(status)
        }
        _ => LlmError::BadRequest(status),
    };
    Failure {
        about_temperature: matches!(error, LlmError::BadRequest(_)) && told.mentions("temperature"),
        error,
    }
}

/// What an error event in the middle of a stream means.
pub(super) fn in_stream(error: &Value) -> LlmError {
    let told = ErrorBody::of(error);
    if told.names(&[
        "rate_limit_error",
        "rate_limit_exceeded",
        "overloaded_error",
    ]) {
        LlmError::RateLimited {
            retry_after: None,
            status: None,
        }
    } else if told.names(&["insufficient_quota"]) {
        LlmError::Quota(None)
    } else if told.names(&["context_length_exceeded"]) || is_overflow(&told.message) {
        LlmError::TooLong(None)
    } else if told.names(&["invalid_request_error"]) {
        LlmError::BadRequest(None)
    } else {
        // What went wrong is not known: it may be this question.
        LlmError::Interrupted
    }
}

#[derive(Default)]
struct ErrorBody {
    codes: Vec<String>,
    message: String,
}

impl ErrorBody {
    fn read(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(value) => Self::of(value.get("error").unwrap_or(&value)),
            Err(_) => Self::default(),
        }
    }

    fn of(error: &Value) -> Self {
        let text = |name: &str| error.get(name).and_then(Value::as_str).map(str::to_owned);
        Self {
            codes: [text("code"), text("type"), text("param")]
                .into_iter()
                .flatten()
                .collect(),
            message: text("message")
                .or_else(|| error.as_str().map(str::to_owned))
                .unwrap_or_default()
                .to_lowercase(),
        }
    }

    fn names(&self, codes: &[&str]) -> bool {
        self.codes.iter().any(|code| codes.contains(&code.as_str()))
    }

    fn mentions(&self, words: &str) -> bool {
        self.message.contains(words) || self.codes.iter().any(|code| code == words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, body: &str) -> Failure {
        classify(&Refusal {
            status,
            retry_after: None,
            body: body.into(),
        })
    }

    #[test]
    fn statuses_and_codes_decide_the_kind() {
        let kind = |status, body: &str| refused(status, body).error;
        assert_eq!(kind(401, "x"), LlmError::Auth(Some(401)));
        assert_eq!(kind(404, ""), LlmError::UnknownModel(Some(404)));
        assert_eq!(
            kind(500, "<html>"),
            LlmError::Unavailable(Outage::Status(500))
        );
        assert_eq!(
            kind(429, "{}"),
            LlmError::RateLimited {
                retry_after: None,
                status: Some(429)
            }
        );
        let quota = r#"{"error":{"code":"insufficient_quota","message":"m"}}"#;
        assert_eq!(kind(429, quota), LlmError::Quota(Some(429)));
        let long = r#"{"error":{"code":"context_length_exceeded"}}"#;
        assert_eq!(kind(400, long), LlmError::TooLong(Some(400)));
        assert_eq!(
            kind(400, r#"{"error":"no"}"#),
            LlmError::BadRequest(Some(400))
        );
    }

    #[test]
    fn a_refused_temperature_is_noticed() {
        let body =
            r#"{"error":{"message":"Unsupported value: 'temperature'","param":"temperature"}}"#;
        assert!(refused(400, body).about_temperature);
        assert!(!refused(500, body).about_temperature);
    }
}
