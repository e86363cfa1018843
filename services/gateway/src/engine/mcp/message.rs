//! A message of a client: JSON-RPC 2.0, one at a time. What cannot be read as one is refused in its words.

use std::borrow::Cow;

use rmcp::model::{ErrorCode, ErrorData, JsonRpcError, RequestId, RequestMetaObject};
use serde_json::{Value, json};

use crate::engine::translate::Body;

/// Longest id of a request, and longest token of progress, in bytes: they are sent back and kept while it is answered.
const ID_BYTES: usize = 256;

/// What a client sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    /// Something that is answered.
    Request(Request),
    /// Something that is not.
    Notification {
        /// What happened.
        method: String,
        /// What is said of it.
        params: Body,
    },
    /// An answer to something that was asked.
    Reply {
        /// What that was known by.
        id: Option<RequestId>,
        /// The answer; nothing where the client refused it.
        result: Option<Value>,
    },
}

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    /// What its answer is known by.
    pub(crate) id: RequestId,
    /// What is asked for.
    pub(crate) method: String,
    /// The details.
    pub(crate) params: Body,
    /// What is said of the request itself.
    pub(crate) meta: RequestMetaObject,
}

/// A message that is refused, with the status of its response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcError {
    /// HTTP status.
    pub(crate) status: u16,
    id: Option<RequestId>,
    error: Box<ErrorData>,
}

impl RpcError {
    /// Of a message whose id is not known, or which has none.
    pub(crate) fn new(status: u16, error: ErrorData) -> Self {
        Self {
            status,
            id: None,
            error: Box::new(error),
        }
    }

    /// Of this request.
    pub(crate) fn of(self, id: &RequestId) -> Self {
        Self {
            id: Some(id.clone()),
            ..self
        }
    }

    /// With another status.
    pub(crate) fn with(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// The details of a request are wrong.
    pub(crate) fn params(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(400, ErrorData::invalid_params(why, None))
    }

    /// The message is none of this protocol.
    pub(crate) fn invalid(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(400, ErrorData::invalid_request(why, None))
    }

    /// It cannot be answered now.
    pub(crate) fn internal(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(200, ErrorData::internal_error(why, None))
    }

    /// There is no such method.
    pub(crate) fn method(name: &str) -> Self {
        let shown: String = name.chars().take(ID_BYTES).collect();
        let text = format!("there is no method {shown}");
        Self::new(404, ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None))
    }

    /// The body of its response.
    pub(crate) fn body(self) -> Value {
        serde_json::to_value(JsonRpcError::new(self.id, *self.error)).unwrap_or_default()
    }
}

impl Message {
    /// Reads a body.
    ///
    /// # Errors
    /// It is no message of JSON-RPC 2.0, or its id or its details are not of the protocol's shape.
    pub(crate) fn read(mut body: Body) -> Result<Self, RpcError> {
        if body.get("jsonrpc") != Some(&Value::from("2.0")) {
            return Err(RpcError::invalid("jsonrpc: must be 2.0"));
        }
        let method = body.remove("method").filter(|method| !method.is_null());
        let id = match body.remove("id") {
            // Serializers write what is not there as null. Only a request has to have an id.
            Some(Value::Null) if is_notice(method.as_ref()) => None,
            given => given.map(id).transpose()?,
        };
        let of = |fault: RpcError| match &id {
            Some(id) => fault.of(id),
            None => fault,
        };
        let method = match method {
            Some(Value::String(method)) => method,
            None if body.contains_key("result") || body.contains_key("error") => {
                let result = body.remove("result");
                return Ok(Self::Reply { id, result });
            }
            _ => return Err(of(RpcError::invalid("method: must be a string"))),
        };
        let params = object(body.remove("params"));
        let params = params.ok_or_else(|| of(RpcError::params("params: must be an object")))?;
        let Some(id) = id else {
            return Ok(Self::Notification { method, params });
        };
        let meta = match params.get("_meta") {
            None | Some(Value::Null) => RequestMetaObject::default(),
            Some(Value::Array(none)) if none.is_empty() => RequestMetaObject::default(),
            Some(given) => serde_json::from_value(given.clone())
                .map_err(|_| RpcError::params("_meta: must be an object").of(&id))?,
        };
        let long = |token: rmcp::model::ProgressToken| token.0.to_string().len() > ID_BYTES;
        if meta.get_progress_token().is_some_and(long) {
            let why = format!("progressToken: is longer than {ID_BYTES} bytes");
            return Err(RpcError::params(why).of(&id));
        }
        Ok(Self::Request(Request {
            id,
            method,
            params,
            meta,
        }))
    }
}

/// Whether a message is a notification, which is never answered, even where it cannot be read.
pub(crate) fn is_notification(message: &Value) -> bool {
    let method = message.get("method");
    match message.get("id") {
        None => method.is_some_and(Value::is_string),
        Some(id) => id.is_null() && is_notice(method),
    }
}

/// Whether a message is a notification by its method.
fn is_notice(method: Option<&Value>) -> bool {
    let method = method.and_then(Value::as_str);
    method.is_some_and(|method| method.starts_with("notifications/"))
}

/// An object of a message. In PHP a list that is empty is one, too.
pub(crate) fn object(given: Option<Value>) -> Option<Body> {
    match given {
        None | Some(Value::Null) => Some(Body::new()),
        Some(Value::Object(object)) => Some(object),
        Some(Value::Array(none)) if none.is_empty() => Some(Body::new()),
        Some(_) => None,
    }
}

/// The id of a request. A whole number may be written as a float, as clients do that know no other numbers.
pub(crate) fn id(given: Value) -> Result<RequestId, RpcError> {
    let read = match &given {
        Value::String(text) if text.len() > ID_BYTES => None,
        Value::Number(number) if number.is_f64() => whole(number.as_f64()).map(RequestId::Number),
        Value::String(_) | Value::Number(_) => serde_json::from_value(given).ok(),
        _ => None,
    };
    read.ok_or_else(|| {
        let why = format!("id: must be a whole number or a text of at most {ID_BYTES} bytes");
        RpcError::invalid(why)
    })
}

/// A float that is a whole number which every client writes in full.
fn whole(number: Option<f64>) -> Option<i64> {
    const MOST: f64 = 9.0e15;
    let number = number.filter(|number| number.fract() == 0.0 && number.abs() < MOST)?;
    Some(number as i64)
}

impl Request {
    /// The answer to it.
    pub(crate) fn answer(&self, result: Value) -> Value {
        let mut answer = json!({"jsonrpc": "2.0", "id": self.id, "result": null});
        // Moved in: the macro would copy the whole tree.
        answer["result"] = result;
        answer
    }

    /// A text of its details that must be there.
    pub(crate) fn text(&self, key: &str) -> Result<&str, RpcError> {
        let text = self.params.get(key).and_then(Value::as_str);
        text.ok_or_else(|| RpcError::params(format!("{key}: must be a string")).of(&self.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: Value) -> Result<Message, Value> {
        let body = body.as_object().cloned().unwrap();
        Message::read(body).map_err(RpcError::body)
    }

    #[test]
    fn a_message_is_a_request_a_notification_or_a_reply() {
        let Ok(Message::Request(request)) =
            read(json!({"jsonrpc": "2.0", "id": "a", "method": "ping",
            "params": {"_meta": {"progressToken": 3}}}))
        else {
            panic!("a request");
        };
        assert_eq!(
            (request.method.as_str(), request.id.to_string()),
            ("ping", "a".to_owned())
        );
        assert!(request.meta.get_progress_token().is_some());
        assert_eq!(
            request.answer(json!({})),
            json!({"jsonrpc": "2.0", "id": "a", "result": {}})
        );
        let notice = read(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert!(matches!(notice, Ok(Message::Notification { .. })));
        let reply = read(json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
        let told = |result| {
            let id = Some(RequestId::Number(1));
            Ok(Message::Reply { id, result })
        };
        assert_eq!(reply, told(Some(json!({}))));
        let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}});
        assert_eq!(read(error), told(None));
    }

    #[test]
    fn messages_are_read_as_serializers_write_them() {
        let notice = json!({"jsonrpc": "2.0", "id": null, "method": "notifications/initialized", "params": []});
        assert!(matches!(read(notice), Ok(Message::Notification { .. })));
        let reply = json!({"jsonrpc": "2.0", "id": 1, "method": null, "params": null,
            "result": {}, "error": null});
        assert!(matches!(read(reply), Ok(Message::Reply { .. })));
        let request = json!({"jsonrpc": "2.0", "id": 2.0, "method": "tools/list", "params": []});
        let Ok(Message::Request(request)) = read(request) else {
            panic!("a request");
        };
        assert_eq!(
            (request.id.clone(), request.params.is_empty()),
            (RequestId::Number(2), true)
        );
        assert_eq!(request.answer(json!({}))["id"], json!(2));
        let empty = json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": []}});
        assert!(matches!(read(empty), Ok(Message::Request(_))));
    }

    #[test]
    fn what_is_no_message_is_refused_by_its_code_and_its_id() {
        let told = |body: Value| {
            let body = read(body).unwrap_err();
            (body["error"]["code"].as_i64(), body.get("id").cloned())
        };
        let invalid = Some(-32600);
        assert_eq!(told(json!({"id": 1, "method": "ping"})), (invalid, None));
        assert_eq!(
            told(json!({"jsonrpc": "2.0", "id": 1})),
            (invalid, Some(json!(1)))
        );
        for id in [json!(null), json!(1.5), json!([1]), json!("x".repeat(257))] {
            let body = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
            assert_eq!(told(body), (invalid, None));
        }
        let params = Some(-32602);
        for details in [
            json!([1]),
            json!({"_meta": 3}),
            json!({"_meta": {"progressToken": "x".repeat(257)}}),
        ] {
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": details});
            assert_eq!(told(body), (params, Some(json!(1))));
        }
    }
}
