//! What a client of completions is answered. The API has no place for what a model thinks.

use bytes::Bytes;
use serde_json::{Value, json};
use tg_schemas::Error;

use super::request;
use crate::engine::compat::dialect::{Asked, Dialect, Head, data, reason, said};
use crate::engine::compat::errors::CompatError;
use crate::engine::compat::used::Used;
use crate::engine::translate::Body;

/// Completions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Completions {
    /// A stream says in a piece of its own what it used.
    with_usage: bool,
}

/// An answer, or a piece of one.
fn completion(head: &Head, body: &Body, choices: &[Value]) -> Value {
    json!({
        "id": format!("cmpl-{}", head.id), "object": "text_completion", "created": head.created,
        "model": head.model(body), "choices": choices,
    })
}

fn choice(text: &str, reason: Option<&str>) -> Value {
    json!({"text": text, "index": 0, "logprobs": null, "finish_reason": reason})
}

fn usage(body: &Body) -> Value {
    let used = Used::of(body);
    json!({
        "prompt_tokens": used.input,
        "completion_tokens": used.output,
        "total_tokens": used.total,
    })
}

impl Completions {
    /// The pieces that a part of an answer is.
    fn pieces(&self, head: &Head, body: &Body, last: bool) -> Vec<Value> {
        let texts = ["delta", "content"].into_iter();
        let texts = texts.filter_map(|key| said(body, key));
        let mut pieces: Vec<Value> = texts
            .map(|text| completion(head, body, &[choice(text, None)]))
            .collect();
        if last {
            pieces.push(completion(head, body, &[choice("", Some(reason(body)))]));
            if self.with_usage {
                let mut used = completion(head, body, &[]);
                used["usage"] = usage(body);
                pieces.push(used);
            }
        }
        pieces
    }
}

impl Dialect for Completions {
    const END: &'static [u8] = b"data: [DONE]\n\n";

    fn read(body: &Body) -> Result<(Asked, Self), Error> {
        request::read(body).map(|(asked, with_usage)| (asked, Self { with_usage }))
    }

    fn failure(fault: &CompatError, request_id: &str) -> Value {
        fault.body(request_id)
    }

    fn whole(&self, head: &Head, body: &Body) -> Value {
        let text = said(body, "content").unwrap_or_default();
        let mut whole = completion(head, body, &[choice(text, Some(reason(body)))]);
        whole["usage"] = usage(body);
        whole
    }

    fn events(&mut self, head: &Head, body: &Body, last: bool) -> Vec<Bytes> {
        self.pieces(head, body, last).iter().map(data).collect()
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

    #[test]
    fn a_text_is_answered_whole_and_in_pieces() {
        let own = Completions { with_usage: true };
        let used = json!({"input": 3, "output": 2, "total": 5});
        let last = body(json!({"content": "upon", "model": "m", "thinking": "hm",
            "finish_reason": "length", "usage": used}));
        assert_eq!(
            own.whole(&head(), &last),
            json!({"id": "cmpl-1", "object": "text_completion", "created": 5, "model": "m",
                "choices": [{"text": "upon", "index": 0, "logprobs": null, "finish_reason": "length"}],
                "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}})
        );
        let first = own.pieces(&head(), &body(json!({"delta": "up"})), false);
        assert_eq!(first.len(), 1);
        assert_eq!(
            (&first[0]["choices"][0]["text"], &first[0]["model"]),
            (&json!("up"), &json!("asked"))
        );
        assert_eq!(first[0]["choices"][0]["finish_reason"], Value::Null);
        let end = own.pieces(&head(), &body(json!({"usage": used})), true);
        assert_eq!(end.len(), 2);
        assert_eq!(end[0]["choices"][0]["finish_reason"], "stop");
        assert_eq!(
            (&end[1]["choices"], &end[1]["usage"]["total_tokens"]),
            (&json!([]), &json!(5))
        );
    }
}
