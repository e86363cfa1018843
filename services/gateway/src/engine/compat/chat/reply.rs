//! What a client of chat completions is answered.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use tg_schemas::Error;

use super::functions;
use super::request::{self, Form};
use crate::engine::compat::dialect::{self, Asked, Dialect, Head, data, reason, said};
use crate::engine::compat::errors::CompatError;
use crate::engine::compat::used::Used;
use crate::engine::translate::Body;

/// The last event.
const DONE: &[u8] = b"data: [DONE]\n\n";

/// Chat completions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chat {
    /// What the request says of its form.
    form: Form,
    /// Something was sent.
    begun: bool,
}

impl Chat {
    /// An answer that nothing was sent of.
    fn new(form: Form) -> Self {
        Self { form, begun: false }
    }

    /// The tools that an answer calls, by the key that its client reads.
    fn calls(&self, body: &Body, numbered: bool) -> Option<(&'static str, Value)> {
        match self.form.functions {
            true => functions::called(dialect::calls(body)).map(|call| ("function_call", call)),
            false => calls(body, numbered).map(|calls| ("tool_calls", calls.into())),
        }
    }

    /// Why an answer ended, as its client knows it.
    fn reason<'a>(&self, body: &'a Body) -> &'a str {
        match self.form.functions {
            true => functions::reason(reason(body)),
            false => reason(body),
        }
    }
}

/// Tools that are called, in the API's words.
fn calls(body: &Body, numbered: bool) -> Option<Vec<Value>> {
    let call = |(at, call): (usize, &Value)| {
        let mut own = json!({
            "id": call["id"], "type": "function",
            "function": {"name": call["name"], "arguments": call["arguments"]},
        });
        if numbered {
            own["index"] = json!(at);
        }
        own
    };
    let calls = dialect::calls(body).iter().enumerate();
    let calls: Vec<Value> = calls.map(call).collect();
    (!calls.is_empty()).then_some(calls)
}

/// What a call used.
fn usage(body: &Body) -> Value {
    let used = Used::of(body);
    json!({
        "prompt_tokens": used.input,
        "completion_tokens": used.output,
        "total_tokens": used.total,
        "prompt_tokens_details": {"cached_tokens": used.cache_read},
    })
}

fn id(head: &Head) -> String {
    format!("chatcmpl-{}", head.id)
}

/// A piece of a streamed answer, in the order of its keys.
#[derive(Serialize)]
struct Chunk<'a> {
    id: String,
    object: &'static str,
    created: i64,
    model: &'a str,
    choices: Vec<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Value>,
}

#[derive(Serialize)]
struct Choice<'a> {
    index: u32,
    delta: Value,
    logprobs: Option<Value>,
    finish_reason: Option<&'a str>,
}

fn chunk<'a>(head: &Head, model: &'a str, delta: Value, reason: Option<&'a str>) -> Chunk<'a> {
    Chunk {
        id: id(head),
        object: "chat.completion.chunk",
        created: head.created,
        model,
        choices: vec![Choice {
            index: 0,
            delta,
            logprobs: None,
            finish_reason: reason,
        }],
        usage: None,
    }
}

impl Chat {
    /// The pieces that a part of an answer is.
    fn chunks<'a>(&mut self, head: &'a Head, body: &'a Body, last: bool) -> Vec<Chunk<'a>> {
        let model = head.model(body);
        let mut chunks = Vec::new();
        if !std::mem::replace(&mut self.begun, true) {
            let delta = json!({"role": "assistant", "content": ""});
            chunks.push(chunk(head, model, delta, None));
        }
        let names = [
            ("thinking", "reasoning_content"),
            ("delta", "content"),
            ("content", "content"),
        ];
        for (key, name) in names {
            if let Some(text) = said(body, key) {
                chunks.push(chunk(head, model, json!({name: text}), None));
            }
        }
        if last {
            if let Some((key, calls)) = self.calls(body, true) {
                chunks.push(chunk(head, model, json!({key: calls}), None));
            }
            chunks.push(chunk(head, model, json!({}), Some(self.reason(body))));
            if self.form.with_usage {
                chunks.push(Chunk {
                    choices: Vec::new(),
                    usage: Some(usage(body)),
                    ..chunk(head, model, json!({}), None)
                });
            }
        }
        chunks
    }
}

impl Dialect for Chat {
    const END: &'static [u8] = DONE;

    fn read(body: &Body) -> Result<(Asked, Self), Error> {
        request::read(body).map(|(asked, form)| (asked, Self::new(form)))
    }

    fn failure(fault: &CompatError, request_id: &str) -> Value {
        fault.body(request_id)
    }

    fn whole(&self, head: &Head, body: &Body) -> Value {
        let text = said(body, "content").unwrap_or_default();
        let mut message = json!({"role": "assistant", "content": text, "refusal": null});
        if let Some(thought) = body.get("thinking") {
            // As servers of reasoning models name it.
            message["reasoning_content"] = thought.clone();
        }
        if let Some((key, calls)) = self.calls(body, false) {
            message[key] = calls;
            if text.is_empty() {
                message["content"] = Value::Null;
            }
        }
        json!({
            "id": id(head), "object": "chat.completion", "created": head.created,
            "model": head.model(body),
            "choices": [
                {"index": 0, "message": message, "logprobs": null, "finish_reason": self.reason(body)},
            ],
            "usage": usage(body),
        })
    }

    fn events(&mut self, head: &Head, body: &Body, last: bool) -> Vec<Bytes> {
        self.chunks(head, body, last).iter().map(data).collect()
    }

    fn broken(&mut self, _head: &Head, fault: &CompatError, request_id: &str) -> Vec<Bytes> {
        vec![data(&fault.body(request_id))]
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

    fn with_usage() -> Chat {
        Chat::new(Form {
            with_usage: true,
            functions: false,
        })
    }

    /// 45: the shapes.
    #[test]
    fn a_whole_answer_has_the_shape_of_the_api() {
        let used = json!({"input": 3, "output": 2, "total": 5, "cache_read": 1});
        let last =
            body(json!({"content": "hi", "model": "m", "finish_reason": "length", "usage": used}));
        let chat = with_usage();
        let whole = chat.whole(&head(), &last);
        assert_eq!(
            (&whole["object"], &whole["model"], &whole["id"]),
            (&json!("chat.completion"), &json!("m"), &json!("chatcmpl-1"))
        );
        assert_eq!(whole["choices"][0]["message"]["content"], "hi");
        assert_eq!(whole["choices"][0]["finish_reason"], "length");
        assert_eq!(whole["usage"]["prompt_tokens_details"]["cached_tokens"], 1);
        let thinks = body(json!({"content": "hi", "thinking": "well"}));
        let message = &chat.whole(&head(), &thinks)["choices"][0]["message"];
        assert_eq!(
            (&message["reasoning_content"], &message["content"]),
            (&json!("well"), &json!("hi"))
        );
    }

    /// The pieces of a part, as they are read.
    fn read(chat: &mut Chat, part: &Body, last: bool) -> Vec<Value> {
        let head = head();
        let chunks = chat.chunks(&head, part, last);
        let read = chunks.iter().map(serde_json::to_value);
        read.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn a_piece_has_its_keys_in_the_order_of_the_api() {
        let mut chat = with_usage();
        read(&mut chat, &body(json!({"delta": "h"})), false);
        let events = chat.events(&head(), &body(json!({"delta": "i"})), true);
        let before = r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":5,"model":"asked","choices":["#;
        let expected = [
            r#"{"index":0,"delta":{"content":"i"},"logprobs":null,"finish_reason":null}]}"#,
            r#"{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}"#,
        ];
        for (event, expected) in events.iter().zip(expected) {
            assert_eq!(*event, format!("{before}{expected}\n\n"));
        }
        let usage = String::from_utf8(events[2].to_vec()).unwrap();
        let usage = usage.strip_prefix(before).unwrap();
        assert!(usage.starts_with(r#"],"usage":{"prompt_tokens":"#));
    }

    #[test]
    fn a_client_of_functions_reads_one_call_whole_and_streamed() {
        let form = Form {
            with_usage: false,
            functions: true,
        };
        let last = body(
            json!({"tool_calls": [{"id": "c", "name": "add", "arguments": "{}"}],
                              "finish_reason": "tool_calls"}),
        );
        let call = json!({"name": "add", "arguments": "{}"});
        let choice = Chat::new(form).whole(&head(), &last)["choices"][0].clone();
        assert_eq!(choice["message"]["function_call"], call);
        assert!(choice["message"].get("tool_calls").is_none());
        assert_eq!(
            (&choice["message"]["content"], &choice["finish_reason"]),
            (&Value::Null, &json!("function_call"))
        );
        let pieces = read(&mut Chat::new(form), &last, true);
        assert_eq!(pieces[1]["choices"][0]["delta"]["function_call"], call);
        assert_eq!(pieces[2]["choices"][0]["finish_reason"], "function_call");
    }

    #[test]
    fn a_streamed_answer_begins_with_its_role_and_ends_with_its_usage() {
        let mut chat = with_usage();
        let first = read(&mut chat, &body(json!({"delta": "h"})), false);
        assert_eq!(first[0]["choices"][0]["delta"]["role"], "assistant");
        assert_eq!(first[1]["choices"][0]["delta"]["content"], "h");
        assert_eq!(first[1]["model"], "asked");
        let piece = read(&mut chat, &body(json!({"thinking": "we"})), false);
        assert_eq!(
            (piece.len(), &piece[0]["choices"][0]["delta"]),
            (1, &json!({"reasoning_content": "we"}))
        );
        let used = json!({"input": 3, "output": 2, "total": 5});
        let end = body(
            json!({"usage": used, "tool_calls": [{"id": "c", "name": "add", "arguments": "{}"}],
                              "finish_reason": "tool_calls"}),
        );
        let end = read(&mut chat, &end, true);
        assert_eq!(end.len(), 3);
        let call = &end[0]["choices"][0]["delta"]["tool_calls"][0];
        assert_eq!(
            (&call["index"], &call["function"]["name"]),
            (&json!(0), &json!("add"))
        );
        assert_eq!(end[1]["choices"][0]["finish_reason"], "tool_calls");
        assert_eq!(
            (&end[2]["choices"], &end[2]["usage"]["total_tokens"]),
            (&json!([]), &json!(5))
        );
    }
}
