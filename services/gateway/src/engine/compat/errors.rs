//! What went wrong, in the words of model APIs. Of a provider it says only what kind of failure it was.

use serde_json::{Value, json};
use tg_schemas::operations::FailureCode;
use tg_schemas::{Error, ErrorCode};

/// A chat is longer than its model reads. Clients shorten it and ask again where they find these words in a message.
const TOO_LONG: &str = "messages: prompt is too long: it exceeds the maximum context length of this model (context_length_exceeded)";

/// A failure as the API tells it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CompatError {
    /// HTTP status.
    pub(crate) status: u16,
    code: &'static str,
    message: String,
    /// After how many seconds it may succeed.
    pub(crate) retry_after: Option<i64>,
}

impl CompatError {
    /// With a message of ours.
    pub(crate) fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            retry_after: None,
        }
    }

    /// What went wrong.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// In a word.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// With a pause, where one is known.
    pub(crate) fn after(mut self, seconds: Option<i64>) -> Self {
        self.retry_after = seconds;
        self
    }

    /// A model that whoever asks may not ask for.
    pub(crate) fn not_allowed() -> Self {
        Self::new(
            403,
            "model_not_allowed",
            "model: this key may not ask for it",
        )
    }

    /// An error of the mesh or of the service, with what a part of its answer says besides.
    pub(crate) fn of(error: &Error, failure: Option<&str>, retry_after: Option<i64>) -> Self {
        let message = error.message.clone();
        let generic = "the model provider cannot be reached or is failing";
        let fault = match (failure, error.code()) {
            (Some("model_not_found"), _) => Self::new(
                404,
                "model_not_found",
                "model: nobody serves a model of this name",
            ),
            (Some("context_window_too_small"), _) => {
                Self::new(422, "context_window_too_small", TOO_LONG)
            }
            (Some("budget_exhausted"), _) => Self::new(429, "rate_limited", message),
            (_, ErrorCode::BadRequest | ErrorCode::BadOperation) => {
                Self::new(400, "validation_error", message)
            }
            (_, ErrorCode::TooLarge) => Self::new(413, "payload_too_large", message),
            (_, ErrorCode::Unauthenticated) => Self::new(401, "unauthorized", message),
            (_, ErrorCode::Forbidden) => Self::new(403, "forbidden", message),
            (_, ErrorCode::Busy | ErrorCode::RateLimited) => {
                Self::new(429, "rate_limited", "too many requests: try again later")
            }
            (_, ErrorCode::Timeout) => {
                Self::new(504, "upstream_timeout", "the model did not answer in time")
            }
            (
                _,
                ErrorCode::Unavailable
                | ErrorCode::NobodyServes
                | ErrorCode::FlowStopped
                | ErrorCode::Interrupted,
            ) => Self::new(
                503,
                "agent_unavailable",
                "no model can be asked at the moment",
            ),
            _ => Self::new(502, "upstream_error", generic),
        };
        let named = error.pause().and_then(|pause| i64::try_from(pause).ok());
        fault.after(retry_after.or(named))
    }

    /// With another name for a field, which the request called otherwise than the service does.
    pub(crate) fn renamed(mut self, from: &str, to: &str) -> Self {
        let field = self.field().is_some_and(|field| {
            let rest = field.strip_prefix(from);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        });
        if field {
            self.message.replace_range(..from.len(), to);
        }
        self
    }

    /// Whether it is this failure of the sessions.
    pub(crate) fn is(&self, code: FailureCode) -> bool {
        self.code == code.as_str()
    }

    fn kind(&self) -> &'static str {
        match self.status {
            400 | 404 | 405 | 409 | 413 | 422 | 426 => "invalid_request_error",
            401 => "authentication_error",
            403 => "permission_error",
            429 => "rate_limit_error",
            _ => "server_error",
        }
    }

    /// The field at fault: what stands before the colon of a message about one.
    pub(crate) fn field(&self) -> Option<&str> {
        let (field, _) = self.message.split_once(": ")?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.[]".contains(c);
        (self.kind() == "invalid_request_error" || self.status == 403)
            .then_some(field)
            .filter(|field| field.chars().all(plain))
    }

    /// The body.
    pub(crate) fn body(&self, request_id: &str) -> Value {
        json!({"error": {
            "message": self.message, "type": self.kind(), "param": self.field(),
            "code": self.code, "request_id": request_id,
        }})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_that_is_too_long_is_refused_in_words_that_clients_look_for() {
        let error = Error::new(ErrorCode::Provider, "x");
        let fault = CompatError::of(&error, Some("context_window_too_small"), None);
        for words in [
            "prompt is too long",
            "maximum context length",
            "context_length_exceeded",
        ] {
            assert!(fault.message().contains(words), "{words}");
        }
        assert_eq!(fault.field(), Some("messages"));
    }

    #[test]
    fn each_kind_has_its_status_and_nothing_of_a_provider_is_told() {
        let of = |code: ErrorCode, failure| {
            let error = Error::new(code, "temperature: at http://10.0.0.1/v1");
            let fault = CompatError::of(&error, failure, Some(7));
            (fault.status, fault.body("r"))
        };
        for (code, failure, status, name) in [
            (ErrorCode::BadRequest, None, 400, "validation_error"),
            (
                ErrorCode::Provider,
                Some("model_not_found"),
                404,
                "model_not_found",
            ),
            (
                ErrorCode::TooLarge,
                Some("context_window_too_small"),
                422,
                "context_window_too_small",
            ),
            (ErrorCode::RateLimited, None, 429, "rate_limited"),
            (ErrorCode::Provider, None, 502, "upstream_error"),
            (ErrorCode::Unavailable, None, 503, "agent_unavailable"),
            (ErrorCode::Timeout, None, 504, "upstream_timeout"),
        ] {
            let (told, body) = of(code, failure);
            assert_eq!((told, &body["error"]["code"]), (status, &json!(name)));
            assert_eq!(body["error"]["request_id"], "r");
            if status != 400 {
                assert!(!body.to_string().contains("http"), "{body}");
            }
        }
        let over = Error::new(ErrorCode::Busy, "Stopped by the budget of its key").after(60);
        let fault = CompatError::of(&over, Some("budget_exhausted"), None);
        assert_eq!((fault.status, fault.retry_after), (429, Some(60)));
        assert_eq!(fault.message(), over.message);
        let (_, body) = of(ErrorCode::BadRequest, None);
        assert_eq!(body["error"]["param"], "temperature");
        assert_eq!(body["error"]["type"], "invalid_request_error");
    }
}
