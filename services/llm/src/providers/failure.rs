//! Reading what a provider's refusal means. The body is looked at for known words only; none of it
//! leaves this file.

use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;

use crate::error::LlmError;

/// A refused request.
#[derive(Debug, PartialEq)]
pub(super) struct Failure {
    pub(super) error: LlmError,
    /// Whether the temperature was the reason.
    pub(super) about_temperature: bool,
}

impl Failure {
    pub(super) fn of(error: LlmError) -> Self {
        Self {
            error,
            about_temperature: false,
        }
    }
}

/// What the status and the body of a refusal mean.
pub(super) fn classify(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Failure {
    let told = Told::read(body);
    let error = match status {
        _ if told.names(&["insufficient_quota", "billing_hard_limit_reached"]) => LlmError::Quota,
        _ if told.names(&["invalid_api_key", "account_deactivated"]) => LlmError::Auth,
        401 | 403 => LlmError::Auth,
        402 => LlmError::Quota,
        404 => LlmError::UnknownModel,
        413 => LlmError::TooLong,
        429 => LlmError::RateLimited { retry_after },
        503 | 529 if retry_after.is_some() => LlmError::RateLimited { retry_after },
        408 | 409 | 500..=599 => LlmError::Unavailable,
        _ if told.names(&["model_not_found"]) => LlmError::UnknownModel,
        _ if told.names(&["context_length_exceeded", "string_above_max_length"])
            || told.mentions("prompt is too long") =>
        {
            LlmError::TooLong
        }
        _ => LlmError::BadRequest,
    };
    Failure {
        about_temperature: error == LlmError::BadRequest && told.mentions("temperature"),
        error,
    }
}

/// What an error event in the middle of a stream means.
pub(super) fn in_stream(error: &Value) -> LlmError {
    let told = Told::of(error);
    if told.names(&[
        "rate_limit_error",
        "rate_limit_exceeded",
        "overloaded_error",
    ]) {
        LlmError::RateLimited { retry_after: None }
    } else if told.names(&["insufficient_quota"]) {
        LlmError::Quota
    } else if told.names(&["context_length_exceeded"]) {
        LlmError::TooLong
    } else if told.names(&["invalid_request_error"]) {
        LlmError::BadRequest
    } else {
        LlmError::BrokenOff
    }
}

#[derive(Default)]
struct Told {
    codes: Vec<String>,
    message: String,
}

impl Told {
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

/// The pause a refusal asks for: milliseconds, seconds or a date (measured from the answer's own date).
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.parse::<u64>().ok()) {
        return Some(Duration::from_millis(millis));
    }
    let told = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = told.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = |text: &str| chrono::DateTime::parse_from_rfc2822(text).ok();
    let span = date(told)? - date(text(DATE.as_str())?)?;
    Some(span.to_std().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_and_codes_decide_the_kind() {
        let kind = |status, body: &str| classify(status, None, body.as_bytes()).error;
        assert_eq!(kind(401, "x"), LlmError::Auth);
        assert_eq!(kind(404, ""), LlmError::UnknownModel);
        assert_eq!(kind(500, "<html>"), LlmError::Unavailable);
        assert_eq!(kind(429, "{}"), LlmError::RateLimited { retry_after: None });
        let quota = r#"{"error":{"code":"insufficient_quota","message":"m"}}"#;
        assert_eq!(kind(429, quota), LlmError::Quota);
        let long = r#"{"error":{"code":"context_length_exceeded"}}"#;
        assert_eq!(kind(400, long), LlmError::TooLong);
        assert_eq!(kind(400, r#"{"error":"no"}"#), LlmError::BadRequest);
    }

    #[test]
    fn a_refused_temperature_is_noticed() {
        let body =
            r#"{"error":{"message":"Unsupported value: 'temperature'","param":"temperature"}}"#;
        assert!(classify(400, None, body.as_bytes()).about_temperature);
        assert!(!classify(500, None, body.as_bytes()).about_temperature);
    }

    #[test]
    fn pauses_are_read_in_every_form() {
        let mut headers = HeaderMap::new();
        assert_eq!(retry_after(&headers), None);
        headers.insert(RETRY_AFTER, "7".parse().unwrap());
        assert_eq!(retry_after(&headers), Some(Duration::from_secs(7)));
        headers.insert(
            RETRY_AFTER,
            "Wed, 21 Oct 2015 07:28:30 GMT".parse().unwrap(),
        );
        headers.insert(DATE, "Wed, 21 Oct 2015 07:28:00 GMT".parse().unwrap());
        assert_eq!(retry_after(&headers), Some(Duration::from_secs(30)));
        headers.insert("retry-after-ms", "250".parse().unwrap());
        assert_eq!(retry_after(&headers), Some(Duration::from_millis(250)));
        headers.clear();
        headers.insert(RETRY_AFTER, "-1e999".parse().unwrap());
        assert_eq!(retry_after(&headers), None);
    }
}
