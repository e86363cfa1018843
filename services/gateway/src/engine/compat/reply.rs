//! What a client of the OpenAI API is answered.

use serde_json::{Value, json};

use crate::engine::translate::Body;

/// What all pieces of an answer have in common.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    /// `chatcmpl-…`.
    pub(crate) id: String,
    /// Seconds since 1970.
    pub(crate) created: i64,
    /// The model that was asked for.
    pub(crate) model: String,
}

/// Tools that are called, in the API's words.
fn calls(body: &Body, numbered: bool) -> Option<Vec<Value>> {
    let calls = body.get("tool_calls")?.as_array()?;
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
    let calls: Vec<Value> = calls.iter().enumerate().map(call).collect();
    (!calls.is_empty()).then_some(calls)
}

/// What a call used.
pub(crate) fn usage(body: &Body) -> Value {
    let used = body.get("usage").cloned().unwrap_or_default();
    let count = |key: &str| used[key].as_i64().unwrap_or(0);
    json!({
        "prompt_tokens": count("input"),
        "completion_tokens": count("output"),
        "total_tokens": count("total"),
        "prompt_tokens_details": {"cached_tokens": count("cache_read")},
    })
}

/// What was used in a workspace, altogether and by session, from the sums of both.
pub(crate) fn used(all: &Body, sessions: &Body) -> Value {
    let sums = |body: &Body| body.get("usage").and_then(Value::as_array).cloned();
    let cumulative = |sum: &Value| {
        let count = |key: &str| sum[key].as_i64().unwrap_or(0);
        let total = count("in_token").saturating_add(count("out_token"));
        json!({
            "input": count("in_token"), "output": count("out_token"),
            "cacheRead": count("cache_read"), "cacheWrite": 0, "total": total,
        })
    };
    let aggregate = sums(all).unwrap_or_default();
    let sessions = sums(sessions).unwrap_or_default();
    let sessions = sessions.iter().map(|sum| {
        let name = sum["name"].as_str().unwrap_or_default().to_owned();
        let calls = sum["model_calls"].as_i64().unwrap_or(0);
        (name, json!({"cumulative": cumulative(sum), "calls": calls}))
    });
    json!({
        "aggregate": cumulative(aggregate.first().unwrap_or(&Value::Null)),
        "sessions": Value::Object(sessions.collect()),
    })
}

impl Head {
    /// The model that answered, else the one that was asked for.
    fn model<'a>(&'a self, body: &'a Body) -> &'a str {
        let told = body.get("model").and_then(Value::as_str);
        told.filter(|model| !model.is_empty())
            .unwrap_or(&self.model)
    }

    /// A whole answer, from its last part.
    pub(crate) fn whole(&self, body: &Body) -> Value {
        let text = body.get("content").cloned().unwrap_or_else(|| json!(""));
        let mut message = json!({"role": "assistant", "content": text, "refusal": null});
        if let Some(thought) = body.get("thinking") {
            // As servers of reasoning models name it.
            message["reasoning_content"] = thought.clone();
        }
        if let Some(calls) = calls(body, false) {
            message["tool_calls"] = calls.into();
            if message["content"] == "" {
                message["content"] = Value::Null;
            }
        }
        let reason = body
            .get("finish_reason")
            .cloned()
            .unwrap_or_else(|| json!("stop"));
        json!({
            "id": self.id, "object": "chat.completion", "created": self.created,
            "model": self.model(body),
            "choices": [
                {"index": 0, "message": message, "logprobs": null, "finish_reason": reason},
            ],
            "usage": usage(body),
        })
    }

    fn chunk(&self, model: &str, delta: Value, reason: Value) -> Value {
        json!({
            "id": self.id, "object": "chat.completion.chunk", "created": self.created,
            "model": model,
            "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}],
        })
    }

    /// The pieces that a part of an answer is; `first` where it is the first, `last` where it is the last.
    pub(crate) fn chunks(
        &self,
        body: &Body,
        first: bool,
        last: bool,
        with_usage: bool,
    ) -> Vec<Value> {
        let model = self.model(body);
        let mut chunks = Vec::new();
        if first {
            let delta = json!({"role": "assistant", "content": ""});
            chunks.push(self.chunk(model, delta, Value::Null));
        }
        let names = [
            ("thinking", "reasoning_content"),
            ("delta", "content"),
            ("content", "content"),
        ];
        for (key, name) in names {
            let text = body.get(key).and_then(Value::as_str);
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                chunks.push(self.chunk(model, json!({name: text}), Value::Null));
            }
        }
        if last {
            if let Some(calls) = calls(body, true) {
                chunks.push(self.chunk(model, json!({"tool_calls": calls}), Value::Null));
            }
            let reason = body
                .get("finish_reason")
                .cloned()
                .unwrap_or_else(|| json!("stop"));
            chunks.push(self.chunk(model, json!({}), reason));
            if with_usage {
                let mut own = self.chunk(model, json!({}), Value::Null);
                own["choices"] = json!([]);
                own["usage"] = usage(body);
                chunks.push(own);
            }
        }
        chunks
    }
}

/// The models of a listing that somebody may ask for, in the order of their ids. Of the `named` ones those are among them
/// that name one as `backend/model`.
pub(crate) fn models(body: &Body, named: &[Value], may: impl Fn(&str) -> bool) -> Value {
    let listed = body.get("models").and_then(Value::as_array);
    let listed: Vec<&Value> = listed.into_iter().flatten().collect();
    let by_backend = named.iter().filter_map(|name| {
        let (_, model) = name.as_str()?.split_once('/')?;
        if listed.iter().any(|one| one["id"] == *name) {
            return None;
        }
        let mut found = (*listed.iter().find(|one| one["id"] == model)?).clone();
        found["id"] = name.clone();
        Some(found)
    });
    let by_backend: Vec<Value> = by_backend.collect();
    let mut models: Vec<Value> = listed
        .into_iter()
        .chain(&by_backend)
        .filter(|model| may(model["id"].as_str().unwrap_or_default()))
        .map(|model| {
            let owner = model["owned_by"].as_str().unwrap_or("unknown");
            let features = model["supported_features"].as_array();
            let has = |features: &Vec<Value>| features.iter().any(|one| one == "tools");
            json!({
                "id": model["id"], "object": "model",
                "created": model["created"].as_i64().unwrap_or(0),
                "owned_by": owner,
                "context_window": model["context_length"],
                // Who says nothing of it is asked with tools; our own reader has none.
                "tools": features.map_or(owner != "threadgraph", has),
            })
        })
        .collect();
    models.sort_by(|one, other| one["id"].as_str().cmp(&other["id"].as_str()));
    json!({"object": "list", "data": models})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(value: Value) -> Body {
        value.as_object().cloned().unwrap()
    }

    fn head() -> Head {
        Head {
            id: "chatcmpl-1".into(),
            created: 5,
            model: "asked".into(),
        }
    }

    /// 45: the shapes.
    #[test]
    fn answers_have_the_shapes_of_the_api() {
        let used = json!({"input": 3, "output": 2, "total": 5, "cache_read": 1});
        let last =
            body(json!({"content": "hi", "model": "m", "finish_reason": "length", "usage": used}));
        let whole = head().whole(&last);
        assert_eq!(
            (&whole["object"], &whole["model"]),
            (&json!("chat.completion"), &json!("m"))
        );
        assert_eq!(whole["choices"][0]["message"]["content"], "hi");
        assert_eq!(whole["choices"][0]["finish_reason"], "length");
        assert_eq!(whole["usage"]["prompt_tokens_details"]["cached_tokens"], 1);
        let thinks = body(json!({"content": "hi", "thinking": "well"}));
        let message = &head().whole(&thinks)["choices"][0]["message"];
        assert_eq!(
            (&message["reasoning_content"], &message["content"]),
            (&json!("well"), &json!("hi"))
        );
        let piece = head().chunks(&body(json!({"thinking": "we"})), false, false, true);
        assert_eq!(
            (piece.len(), &piece[0]["choices"][0]["delta"]),
            (1, &json!({"reasoning_content": "we"}))
        );

        let first = head().chunks(&body(json!({"delta": "h"})), true, false, true);
        assert_eq!(first[0]["choices"][0]["delta"]["role"], "assistant");
        assert_eq!(first[1]["choices"][0]["delta"]["content"], "h");
        assert_eq!(first[1]["model"], "asked");
        let end = body(
            json!({"usage": used, "tool_calls": [{"id": "c", "name": "add", "arguments": "{}"}],
                              "finish_reason": "tool_calls"}),
        );
        let end = head().chunks(&end, false, true, true);
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

    #[test]
    fn what_was_used_is_told_altogether_and_by_session() {
        let all = body(json!({"usage": [{"name": "w", "in_token": 5, "out_token": 2}]}));
        let one =
            json!({"name": "s", "in_token": 4, "out_token": 1, "cache_read": 3, "model_calls": 2});
        let told = used(&all, &body(json!({"usage": [one]})));
        assert_eq!(told["aggregate"]["total"], 7);
        let cumulative =
            json!({"input": 4, "output": 1, "cacheRead": 3, "cacheWrite": 0, "total": 5});
        assert_eq!(
            told["sessions"],
            json!({"s": {"cumulative": cumulative, "calls": 2}})
        );
        let none = used(&Body::new(), &Body::new());
        assert_eq!(
            (&none["aggregate"]["total"], &none["sessions"]),
            (&json!(0), &json!({}))
        );
    }

    /// 44: who may ask for one model sees one.
    #[test]
    fn models_are_those_that_may_be_asked_for_in_order() {
        let listed = body(json!({"models": [
            {"id": "b", "context_length": 8, "owned_by": "x"}, {"id": "a"},
            {"id": "c", "owned_by": "threadgraph"},
        ]}));
        let all = models(&listed, &[], |_| true);
        let ids: Vec<_> = all["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["id"].clone())
            .collect();
        assert_eq!(ids, ["a", "b", "c"]);
        assert_eq!(
            (&all["data"][1]["context_window"], &all["data"][1]["tools"]),
            (&json!(8), &json!(true))
        );
        assert_eq!(all["data"][2]["tools"], false);
        let own = [json!("near/b"), json!("near/nobody"), json!("a")];
        let own = models(&listed, &own, |id| id == "near/b");
        assert_eq!(own["data"][0]["id"], "near/b");
        assert_eq!(own["data"].as_array().unwrap().len(), 1);
        let one = models(&listed, &[], |id| id == "b");
        assert_eq!(one["data"].as_array().unwrap().len(), 1);
    }
}
