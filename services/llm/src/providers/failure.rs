//! Reading what a provider's refusal means. The body is looked at for known words only; none of it
//! leaves this file.

use std::time::Duration;

use serde_json::Value;
use tg_compaction::is_overflow;
use tg_provider_http::{HttpError, Outage, Refusal};

use super::fields::Field;
use crate::error::LlmError;

/// A refused request.
#[derive(Debug, PartialEq)]
pub(super) struct Failure {
    pub(super) error: LlmError,
    /// What was said of it.
    told: ErrorBody,
}

impl Failure {
    /// The member of a request that is the reason.
    pub(super) fn about(&self, body: &Value) -> Option<Field> {
        // Templates of chats that know no instructions, or no ids of others, fail within the server.
        let is_fault = matches!(self.error, LlmError::Unavailable(Outage::Status(500)));
        let of_template = [Field::System, Field::CallIds];
        let is_refusal = matches!(self.error, LlmError::BadRequest(_));
        let mut fields = Field::ALL.into_iter();
        fields.find(|field| {
            (is_refusal || is_fault && of_template.contains(field))
                && field.is_in(body)
                && field.words().iter().any(|words| self.told.mentions(words))
        })
    }

    /// Whether the next request would be refused for the same reason, whatever it asks.
    pub(super) fn is_lasting(&self) -> bool {
        const OF_ONE: [&str; 3] = [
            "json_validate_failed",
            "invalid schema",
            "must contain the word",
        ];
        !OF_ONE.iter().any(|words| self.told.mentions(words))
    }
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
            told: ErrorBody::default(),
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
    Failure {
        error: by_status(refusal, &told),
        told,
    }
}

fn by_status(refusal: &Refusal, told: &ErrorBody) -> LlmError {
    let retry_after = refusal.retry_after;
    let status = Some(refusal.status);
    match refusal.status {
        _ if told.names(QUOTA) => LlmError::Quota(status),
        400 if told.names(CONTENT) => LlmError::Withheld,
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
        // The model wrote a call that its server cannot read: no fault of the request.
        _ if told.names(CALL) => LlmError::Interrupted,
        _ if told.is_too_long() => LlmError::TooLong(status),
        _ => LlmError::BadRequest(status),
    }
}

/// Names of errors.
const QUOTA: &[&str] = &["insufficient_quota", "billing_hard_limit_reached"];
const RATE: &[&str] = &[
    "rate_limit_error",
    "rate_limit_exceeded",
    "rate_limited",
    "too_many_requests",
    "throttling_exception",
    "overloaded_error",
];
const CONTENT: &[&str] = &["content_filter", "content_policy_violation"];
const AUTH: &[&str] = &[
    "invalid_api_key",
    "account_deactivated",
    "authentication_error",
    "permission_error",
    "permission_denied_error",
];
const MODEL: &[&str] = &["model_not_found", "not_found_error"];
const REQUEST: &[&str] = &["invalid_request_error", "bad_request_error"];
const CALL: &[&str] = &["tool_use_failed"];
const SERVER: &[&str] = &["internal_server_error", "service_unavailable"];

/// What an error event in the middle of a stream, or an error in the place of an answer, means.
pub(super) fn in_stream(error: &Value) -> LlmError {
    let told = ErrorBody::of(error);
    if let Some(status) = told.status {
        let refusal = Refusal {
            status,
            retry_after: told.pause,
            body: Vec::new(),
        };
        return by_status(&refusal, &told);
    }
    if told.names(QUOTA) {
        LlmError::Quota(None)
    } else if told.is_rate() || told.mentions("too many requests") {
        LlmError::RateLimited {
            retry_after: told.pause,
            status: None,
        }
    } else if told.names(CONTENT) {
        LlmError::Withheld
    } else if told.names(AUTH) {
        LlmError::Auth(None)
    } else if told.is_too_long() {
        LlmError::TooLong(None)
    } else if told.names(MODEL) {
        LlmError::UnknownModel(None)
    } else if told.names(CALL) {
        LlmError::Interrupted
    } else if told.names(REQUEST) {
        LlmError::BadRequest(None)
    } else if told.names(SERVER) {
        LlmError::Unavailable(Outage::Status(500))
    } else {
        // What went wrong is not known: it may be this question.
        LlmError::Interrupted
    }
}

/// What an event means that says of itself that it is an error.
pub(super) fn event(data: &str) -> LlmError {
    match serde_json::from_slice::<Value>(data.as_bytes()) {
        Ok(value) => told(&value).unwrap_or_else(|| in_stream(&value)),
        Err(_) => in_stream(&Value::from(data)),
    }
}

/// The error that stands where an answer should, in one of the forms in which servers write it.
pub(super) fn told(body: &Value) -> Option<LlmError> {
    let body = match body {
        Value::Array(items) => items.first().filter(|first| first.get("error").is_some())?,
        body => body,
    };
    let first = |name: &str| match body.get(name)? {
        Value::Array(items) => items.first(),
        Value::Null | Value::Bool(_) => None,
        Value::String(text) if text.is_empty() => None,
        Value::Object(map) if map.is_empty() => None,
        error => Some(error),
    };
    if let Some(error) = first("error").or_else(|| first("errors")) {
        return Some(in_stream(error));
    }
    let says = |name: &str| body.get(name).is_some_and(|value| !value.is_null());
    let is_named = body["object"] == "error" || body["type"] == "error" || body["success"] == false;
    let is_told = says("message") || says("msg") || says("detail");
    let has_answer = says("choices") || says("data") || says("models");
    let is_error = is_named || is_told && (says("code") || says("status") || says("detail"));
    (is_error && !has_answer).then(|| in_stream(body))
}

/// What of a refusal is looked at.
#[derive(Debug, Default, PartialEq)]
struct ErrorBody {
    /// Codes and types, of lower case letters and digits.
    codes: Vec<String>,
    /// All that it says, in lower case, but for what of the request it repeats.
    words: String,
    /// The status that an error has that came with another one.
    status: Option<u16>,
    /// The pause that it asks for.
    pause: Option<Duration>,
}

/// Members of an error in which a server repeats the request, or the answer.
const REPEATED: [&str; 4] = ["input", "failed_generation", "request", "body"];

impl ErrorBody {
    fn read(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(Value::Array(items)) => items.first().map(Self::within).unwrap_or_default(),
            Ok(value) => Self::within(&value),
            Err(_) => Self::default(),
        }
    }

    fn within(value: &Value) -> Self {
        let error = value.get("error").filter(|error| !error.is_null());
        Self::of(error.unwrap_or(value))
    }

    fn of(error: &Value) -> Self {
        let codes = ["code", "type", "param", "status"].iter();
        let codes = codes.filter_map(|name| error.get(*name)?.as_str().map(squashed));
        let statuses = ["code", "status", "status_code"];
        let statuses = statuses.iter().filter_map(|name| number(error.get(*name)?));
        let mut statuses = statuses.filter_map(|status| u16::try_from(status).ok());
        let pause = ["retry_after", "retry_after_seconds"].iter();
        let pause = pause.filter_map(|name| {
            let metadata = error.get("metadata").unwrap_or(error);
            number(error.get(*name).or_else(|| metadata.get(*name))?)
        });
        let mut words = String::new();
        gather(error, &mut words);
        Self {
            codes: codes.collect(),
            words: words.to_lowercase(),
            status: statuses.find(|status| (400..600).contains(status)),
            pause: pause.map(Duration::from_secs).next(),
        }
    }

    fn names(&self, codes: &[&str]) -> bool {
        self.codes
            .iter()
            .any(|told| codes.iter().any(|code| squashed(code) == *told))
    }

    /// Whether there were too many requests; some say in what time.
    fn is_rate(&self) -> bool {
        let mut codes = self.codes.iter();
        self.names(RATE) || codes.any(|code| code.starts_with("ratelimit"))
    }

    fn mentions(&self, words: &str) -> bool {
        self.words.contains(words)
    }

    fn is_too_long(&self) -> bool {
        self.names(&["context_length_exceeded", "string_above_max_length"])
            || is_overflow(&self.words)
    }
}

/// A number, also where it is written as a text.
fn number(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        value => value
            .as_u64()
            .or(value.as_f64().map(|number| number as u64)),
    }
}

/// `RateLimitError` and `rate_limit_error` are one name.
fn squashed(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|c| c.to_ascii_lowercase()).collect()
}

/// All texts of an error. The strict parser bounds how deep it is.
fn gather(value: &Value, words: &mut String) {
    match value {
        Value::String(text) => {
            words.push_str(text);
            words.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, words)),
        Value::Object(map) => {
            let told = map
                .iter()
                .filter(|(name, _)| !REPEATED.contains(&name.as_str()));
            told.for_each(|(_, value)| gather(value, words));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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

    /// As Groq refuses its own model, with a status and within a stream.
    #[test]
    fn a_call_that_a_server_cannot_read_is_no_invalid_request() {
        let error = json!({"message": "Failed to call a function. Please adjust your prompt.", "type": "invalid_request_error",
            "code": "tool_use_failed", "failed_generation": "<function=add{\"a\": 1}>"});
        let body = json!({ "error": error }).to_string();
        assert_eq!(refused(400, &body).error, LlmError::Interrupted);
        assert_eq!(in_stream(&error), LlmError::Interrupted);
        let mut numbered = error;
        numbered["status_code"] = json!(400);
        assert_eq!(in_stream(&numbered), LlmError::Interrupted);
    }

    #[test]
    fn a_refused_member_is_noticed() {
        let request = json!({
            "temperature": 1, "stream_options": {}, "max_tokens": 1, "response_format": {"type": "json_object"},
            "messages": [{"role": "system", "content": "s"}, {"role": "assistant", "content": null}],
        });
        let about = |status, body: &str| refused(status, body).about(&request);
        let temperature =
            r#"{"error":{"message":"Unsupported value: 'temperature'","param":"temperature"}}"#;
        assert_eq!(about(400, temperature), Some(Field::Temperature));
        assert_eq!(about(500, temperature), None);
        for (status, body, field) in [
            (
                422,
                r#"{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options","include_usage"],"input":true}]}}"#,
                Field::StreamOptions,
            ),
            (
                422,
                r#"{"detail":[{"loc":["body","stream_options"],"msg":"extra fields not permitted"}]}"#,
                Field::StreamOptions,
            ),
            (
                400,
                r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","param":"max_tokens"}}"#,
                Field::MaxTokens,
            ),
            (
                400,
                r#"{"error":"'response_format.type' must be 'json_schema' or 'text'"}"#,
                Field::Json,
            ),
            (
                400,
                r#"{"error":"Invalid 'content': 'content' field must be a string or an array of objects."}"#,
                Field::NoContent,
            ),
            (
                500,
                r#"{"error":{"code":500,"message":"System role not supported","type":"server_error"}}"#,
                Field::System,
            ),
            (
                400,
                r#"[{"error":{"code":400,"message":"Developer instruction is not enabled for models/x","status":"INVALID_ARGUMENT"}}]"#,
                Field::System,
            ),
        ] {
            assert_eq!(about(status, body), Some(field), "{body}");
        }
        // What it repeats of the request, or of the answer, is no reason.
        let repeated = r#"{"error":{"message":"no","failed_generation":"temperature","input":"stream_options"}}"#;
        assert_eq!(about(400, repeated), None);
        let once =
            r#"{"error":{"message":"Failed to generate JSON.","code":"json_validate_failed"}}"#;
        assert_eq!(about(400, once), Some(Field::Json));
        assert!(!refused(400, once).is_lasting() && refused(400, temperature).is_lasting());
    }

    #[test]
    fn an_error_in_the_place_of_an_answer_is_one() {
        let rate = |pause: Option<u64>, status| LlmError::RateLimited {
            retry_after: pause.map(Duration::from_secs),
            status,
        };
        for (body, error) in [
            (
                json!({"error": {"message": "slow down", "code": 429}, "user_id": "u"}),
                rate(None, Some(429)),
            ),
            (
                json!({"error": {"message": "m", "code": "429", "metadata": {"retry_after": 3}}}),
                rate(Some(3), Some(429)),
            ),
            (
                json!({"object": "error", "message": "m", "type": "RateLimitError"}),
                rate(None, None),
            ),
            (
                json!({"error": {"type": "rate_limit_exceeded"}}),
                rate(None, None),
            ),
            (
                json!({"code": "rate_limit_daily", "message": "Error code: 429"}),
                rate(None, None),
            ),
            (
                json!({"error": {"code": "content_filter", "status": 400, "message": "m"}}),
                LlmError::Withheld,
            ),
            (
                json!({"status": "FAILED", "error": "err.supplier_error"}),
                LlmError::Interrupted,
            ),
            (json!({"error": "Too Many Requests"}), rate(None, None)),
            (
                json!({"error": {"code": 502, "message": "m"}, "choices": [{}]}),
                LlmError::Unavailable(Outage::Status(502)),
            ),
            (
                json!({"error": {"code": "insufficient_quota"}}),
                LlmError::Quota(None),
            ),
            (
                json!({"error": {"code": 402, "message": "m"}}),
                LlmError::Quota(Some(402)),
            ),
            (
                json!({"error": {"message": "No auth credentials found", "code": 401}}),
                LlmError::Auth(Some(401)),
            ),
            (
                json!({"type": "error", "error": {"type": "authentication_error"}}),
                LlmError::Auth(None),
            ),
            (
                json!({"object": "error", "message": "maximum context length is 4096", "type": "BadRequestError", "code": 400}),
                LlmError::TooLong(Some(400)),
            ),
            (
                json!({"object": "error", "message": "m", "type": "NotFoundError", "code": 404}),
                LlmError::UnknownModel(Some(404)),
            ),
            (
                json!({"object": "error", "message": "m", "code": null}),
                LlmError::Interrupted,
            ),
            (
                json!({"detail": "Not authenticated", "status": 401}),
                LlmError::Auth(Some(401)),
            ),
            (
                json!({"success": false, "errors": [{"code": 7000, "message": "no route"}]}),
                LlmError::Interrupted,
            ),
            (
                json!([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}]),
                rate(None, Some(429)),
            ),
            (
                json!({"message": "m", "code": 500}),
                LlmError::Unavailable(Outage::Status(500)),
            ),
        ] {
            assert_eq!(told(&body), Some(error), "{body}");
        }
        for body in [
            json!({"choices": []}),
            json!({"choices": [{}], "error": null}),
            json!({"choices": [{}], "error": {}}),
            json!({"choices": [{}], "error": "", "code": 0, "message": "ok"}),
            json!({"usage": {}}),
            json!([]),
            json!("error"),
        ] {
            assert_eq!(told(&body), None, "{body}");
        }
    }
}
