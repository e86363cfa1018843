//! What a client of messages is answered: blocks, each with an index.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use tg_schemas::Error;

use super::request;
use crate::engine::compat::dialect::{Asked, Dialect, Head, calls, named, reason, said};
use crate::engine::compat::errors::CompatError;
use crate::engine::compat::used::Used;
use crate::engine::translate::Body;

/// The block that pieces are added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Thinking,
    Text,
}

/// Messages.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Messages {
    /// The client asked for thoughts. Others would not know the block.
    thoughts: bool,
    /// Something was sent.
    begun: bool,
    open: Option<Open>,
    /// Index of the block that is open, or of the next one.
    index: usize,
}

impl Messages {
    /// An answer that nothing was sent of.
    fn new(thoughts: bool) -> Self {
        Self {
            thoughts,
            begun: false,
            open: None,
            index: 0,
        }
    }

    fn close(&mut self, events: &mut Vec<Value>) {
        if self.open.take().is_some() {
            events.push(json!({"type": "content_block_stop", "index": self.index}));
            self.index += 1;
        }
    }

    /// Adds a piece to its block, which is opened first where another one is open, or none.
    fn piece(&mut self, of: Open, text: &str, events: &mut Vec<Value>) {
        let (block, delta) = match of {
            Open::Thinking => (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                json!({"type": "thinking_delta", "thinking": text}),
            ),
            Open::Text => (
                json!({"type": "text", "text": ""}),
                json!({"type": "text_delta", "text": text}),
            ),
        };
        if self.open != Some(of) {
            self.close(events);
            self.open = Some(of);
            events.push(json!({
                "type": "content_block_start", "index": self.index, "content_block": block,
            }));
        }
        events.push(json!({"type": "content_block_delta", "index": self.index, "delta": delta}));
    }

    fn call(&mut self, call: &Value, events: &mut Vec<Value>) {
        let block = json!({
            "type": "tool_use", "id": call["id"], "name": call["name"], "input": {},
        });
        let input = Value::Object(input(call)).to_string();
        let delta = json!({"type": "input_json_delta", "partial_json": input});
        let at = self.index;
        self.index += 1;
        events.extend([
            json!({"type": "content_block_start", "index": at, "content_block": block}),
            json!({"type": "content_block_delta", "index": at, "delta": delta}),
            json!({"type": "content_block_stop", "index": at}),
        ]);
    }

    fn told(&mut self, head: &Head, body: &Body, last: bool) -> Vec<Value> {
        let mut events = Vec::new();
        if !std::mem::replace(&mut self.begun, true) {
            let message = message(head, &Body::new(), Vec::new(), Value::Null);
            events.push(json!({"type": "message_start", "message": message}));
            events.push(json!({"type": "ping"}));
        }
        if let Some(thought) = said(body, "thinking").filter(|_| self.thoughts) {
            self.piece(Open::Thinking, thought, &mut events);
        }
        for key in ["delta", "content"] {
            if let Some(text) = said(body, key) {
                self.piece(Open::Text, text, &mut events);
            }
        }
        if last {
            self.close(&mut events);
            for call in calls(body) {
                self.call(call, &mut events);
            }
            let delta = json!({"stop_reason": stop_reason(body), "stop_sequence": null});
            events.push(json!({"type": "message_delta", "delta": delta, "usage": usage(body)}));
            events.push(json!({"type": "message_stop"}));
        }
        events
    }
}

/// The arguments of a call, which are an object here. Others are shown under a name.
fn input(call: &Value) -> Map<String, Value> {
    let text = call["arguments"].as_str().unwrap_or_default();
    match serde_json::from_slice(text.as_bytes()) {
        Ok(Value::Object(input)) => input,
        Ok(other) => Map::from_iter([("arguments".to_owned(), other)]),
        Err(_) if text.trim().is_empty() => Map::new(),
        Err(_) => Map::from_iter([("arguments".to_owned(), text.into())]),
    }
}

fn stop_reason(body: &Body) -> &'static str {
    match reason(body) {
        "length" => "max_tokens",
        "tool_calls" => "tool_use",
        "content_filter" => "refusal",
        _ => "end_turn",
    }
}

/// What a call used. Tokens that the provider had kept, or keeps now, are beside those that it read: most providers count
/// them among these, and one that reports fewer of them does not.
fn usage(body: &Body) -> Value {
    let used = Used::of(body);
    let beside = used.cache_read.saturating_add(used.cache_write);
    let fresh = match used.input.saturating_sub(beside) {
        fresh @ 0.. => fresh,
        _ => used.input,
    };
    json!({
        "input_tokens": fresh,
        "output_tokens": used.output,
        "cache_creation_input_tokens": used.cache_write,
        "cache_read_input_tokens": used.cache_read,
    })
}

fn message(head: &Head, body: &Body, content: Vec<Value>, reason: Value) -> Value {
    json!({
        "id": format!("msg_{}", head.id), "type": "message", "role": "assistant",
        "model": head.model(body), "content": content,
        "stop_reason": reason, "stop_sequence": null, "usage": usage(body),
    })
}

fn failure(fault: &CompatError, request_id: &str) -> Value {
    let kind = match fault.status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        400 | 405 | 422 | 426 => "invalid_request_error",
        503 => "overloaded_error",
        504 => "timeout_error",
        _ => "api_error",
    };
    json!({
        "type": "error",
        "error": {"type": kind, "message": fault.message()},
        "request_id": request_id,
    })
}

impl Dialect for Messages {
    fn read(body: &Body) -> Result<(Asked, Self), Error> {
        request::read(body).map(|(asked, thoughts)| (asked, Self::new(thoughts)))
    }

    fn failure(fault: &CompatError, request_id: &str) -> Value {
        failure(fault, request_id)
    }

    fn whole(&self, head: &Head, body: &Body) -> Value {
        let mut content = Vec::new();
        if let Some(thought) = said(body, "thinking").filter(|_| self.thoughts) {
            content.push(json!({"type": "thinking", "thinking": thought, "signature": ""}));
        }
        if let Some(text) = said(body, "content") {
            content.push(json!({"type": "text", "text": text}));
        }
        content.extend(calls(body).iter().map(|call| {
            json!({
                "type": "tool_use", "id": call["id"], "name": call["name"],
                "input": input(call),
            })
        }));
        message(head, body, content, stop_reason(body).into())
    }

    fn events(&mut self, head: &Head, body: &Body, last: bool) -> Vec<Bytes> {
        self.told(head, body, last).iter().map(named).collect()
    }

    fn broken(&mut self, _head: &Head, fault: &CompatError, request_id: &str) -> Vec<Bytes> {
        vec![named(&failure(fault, request_id))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(value: Value) -> Body {
        value.as_object().cloned().unwrap()
    }

    fn head() -> Head {
        Head {
            id: "1".into(),
            created: 5,
            model: "asked".into(),
        }
    }

    fn last() -> Body {
        body(json!({
            "tool_calls": [{"id": "c", "name": "add", "arguments": "{\"a\":1}"}],
            "finish_reason": "tool_calls", "model": "m",
            "usage": {"input": 7, "output": 2, "total": 9, "cache_read": 3, "cache_write": 1},
        }))
    }

    #[test]
    fn a_whole_answer_is_blocks_and_a_reason() {
        let mut end = last();
        end.insert("content".into(), "hi".into());
        end.insert("thinking".into(), "hm".into());
        let whole = Messages::new(false).whole(&head(), &end);
        assert_eq!(
            whole["content"],
            json!([{"type": "text", "text": "hi"},
                   {"type": "tool_use", "id": "c", "name": "add", "input": {"a": 1}}])
        );
        assert_eq!(
            (&whole["type"], &whole["stop_reason"], &whole["model"]),
            (&json!("message"), &json!("tool_use"), &json!("m"))
        );
        assert_eq!(
            whole["usage"],
            json!({"input_tokens": 3, "output_tokens": 2,
                   "cache_creation_input_tokens": 1, "cache_read_input_tokens": 3})
        );
        let thinks = Messages::new(true).whole(&head(), &end);
        assert_eq!(thinks["content"][0]["thinking"], "hm");
        let cut = body(json!({"content": "h", "finish_reason": "length"}));
        assert_eq!(
            Messages::new(false).whole(&head(), &cut)["stop_reason"],
            "max_tokens"
        );
    }

    #[test]
    fn events_open_and_close_each_block_once_and_in_order() {
        let mut messages = Messages::new(true);
        let parts = [
            (body(json!({"thinking": "hm"})), false),
            (body(json!({"delta": "h"})), false),
            (body(json!({"delta": "i"})), false),
            (last(), true),
        ];
        let events = parts
            .iter()
            .flat_map(|(body, last)| messages.told(&head(), body, *last));
        let shown: Vec<(String, Value)> = events
            .map(|event| {
                (
                    event["type"].as_str().unwrap().to_owned(),
                    event["index"].clone(),
                )
            })
            .collect();
        let kinds: Vec<&str> = shown.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(
            kinds,
            [
                "message_start",
                "ping",
                "content_block_start",
                "content_block_delta",
                "content_block_stop",
                "content_block_start",
                "content_block_delta",
                "content_block_delta",
                "content_block_stop",
                "content_block_start",
                "content_block_delta",
                "content_block_stop",
                "message_delta",
                "message_stop",
            ]
        );
        let indices: Vec<u64> = shown.iter().filter_map(|(_, at)| at.as_u64()).collect();
        assert_eq!(indices, [0, 0, 0, 1, 1, 1, 1, 2, 2, 2]);
    }

    #[test]
    fn failures_have_the_shape_of_the_api() {
        let fault = CompatError::new(404, "model_not_found", "model: nobody serves it");
        assert_eq!(
            Messages::failure(&fault, "r"),
            json!({"type": "error", "request_id": "r",
                   "error": {"type": "not_found_error", "message": "model: nobody serves it"}})
        );
        let events = Messages::new(false).broken(&head(), &fault, "r");
        assert!(events[0].starts_with(b"event: error\ndata: {"));
    }

    #[test]
    fn arguments_that_are_no_object_are_shown_under_a_name() {
        let of = |text: &str| Value::Object(input(&json!({"arguments": text})));
        assert_eq!(of(""), json!({}));
        assert_eq!(of("[1]"), json!({"arguments": [1]}));
        assert_eq!(of("{"), json!({"arguments": "{"}));
    }
}
