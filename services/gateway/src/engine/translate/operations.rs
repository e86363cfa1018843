//! Operations as types: a body is the request as it is, a reply is `result`, a chunk is `event` and `data`. What they hold is
//! checked by whoever serves the operation.

use serde_json::Value;
use tg_schemas::Error;
use tg_schemas::msg::{OperationRequest, OperationResponse};
use tg_schemas::operations::{SESSIONS, find};

use super::fields::{Body, Fields};
use super::{About, Translate, error_body};

/// Keys of a body that are for the gateway.
const OWN: [&str; 2] = ["operation", "workspace"];
/// The key that asks for events. Only some operations have them.
const STREAMING: &str = "streaming";

/// Any service whose operations are declared in `tg_schemas::operations`.
pub struct Operations;

impl Translate for Operations {
    type Question = OperationRequest;
    type Answer = OperationResponse;

    fn question(body: &Fields<'_>, about: &About) -> Result<Self::Question, Error> {
        let fields = body.whole().iter();
        let streams = find(SESSIONS, &about.operation).is_some_and(|meta| !meta.stream.is_empty());
        let fields = fields.filter(|(key, _)| {
            let key = key.as_str();
            !OWN.contains(&key) && (streams || key != STREAMING)
        });
        Ok(OperationRequest {
            operation: about.operation.clone(),
            request: fields
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        })
    }

    fn part(part: Self::Answer, _: &About) -> Body {
        let mut body = Body::new();
        let key = match part.event.as_str() {
            "" => "result",
            event => {
                body.insert("event".to_owned(), event.into());
                "data"
            }
        };
        body.insert(key.to_owned(), Value::Object(part.data));
        body
    }

    /// The operation's own error has a code that says more than the type of an error of the mesh.
    fn failure(error: &Error, part: Self::Answer) -> Body {
        let mut failure = part.failure;
        let Some(code) = failure.remove("code") else {
            return error_body(error);
        };
        let mut told = Body::new();
        told.insert("type".to_owned(), code);
        told.extend(failure);
        let mut body = Body::new();
        body.insert("error".to_owned(), Value::Object(told));
        body
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{part, question};
    use super::*;

    fn object(value: Value) -> Body {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn a_body_is_the_request_and_a_reply_the_result() {
        let body = json!({"operation": "chat", "workspace": "w", "name": "a", "message": "x"});
        let asked = question::<Operations>(body, "chat").unwrap();
        assert_eq!(asked.operation, "chat");
        assert_eq!(asked.request, object(json!({"name": "a", "message": "x"})));
        let body = json!({"operation": "x", "streaming": true});
        for (operation, told) in [
            ("create-session", json!({})),
            ("send-message", json!({"streaming": true})),
        ] {
            let asked = question::<Operations>(body.clone(), operation).unwrap();
            assert_eq!(asked.request, object(told), "{operation}");
        }
        let reply = OperationResponse {
            data: object(json!({"a": 1})),
            last: true,
            ..OperationResponse::default()
        };
        assert_eq!(
            part::<Operations>(reply.clone(), "chat"),
            json!({"result": {"a": 1}})
        );
        let chunk = OperationResponse {
            event: "token".to_owned(),
            last: false,
            ..reply
        };
        let told = part::<Operations>(chunk, "chat");
        assert_eq!(told, json!({"event": "token", "data": {"a": 1}}));
    }

    #[test]
    fn an_operation_says_its_own_code() {
        let error = Error::typed("not-found", "m");
        let part = OperationResponse {
            failure: object(json!({"code": "session_not_found", "message": "m", "x": 1})),
            ..OperationResponse::default()
        };
        let told = Operations::failure(&error, part);
        let expected = json!({"error": {"type": "session_not_found", "message": "m", "x": 1}});
        assert_eq!(Value::Object(told), expected);
        let told = Operations::failure(&error, OperationResponse::default());
        assert_eq!(told["error"]["type"], "not-found");
    }
}
