//! What a client of responses is answered: items, and for a stream the numbered events that build them up.

use bytes::Bytes;
use serde_json::{Value, json};
use tg_schemas::{Error, limits};

use super::kept::{self, Kept, Wish};
use super::{custom, namespaces, request};
use crate::engine::compat::dialect::{Asked, Dialect, Head, calls, named, reason, said};
use crate::engine::compat::errors::CompatError;
use crate::engine::compat::used::Used;
use crate::engine::translate::Body;

/// The item that pieces are added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// What the model thinks.
    Reasoning,
    /// What it says.
    Message,
}

impl Kind {
    /// The events of its texts begin with this.
    fn word(self) -> &'static str {
        match self {
            Self::Reasoning => "reasoning_summary_text",
            Self::Message => "output_text",
        }
    }

    /// The event of its one part.
    fn part_event(self) -> &'static str {
        match self {
            Self::Reasoning => "response.reasoning_summary_part",
            Self::Message => "response.content_part",
        }
    }

    /// How events say which part it is.
    fn index(self) -> &'static str {
        match self {
            Self::Reasoning => "summary_index",
            Self::Message => "content_index",
        }
    }

    /// An event of its texts, with what one of a message must have: probabilities, of which none is known here.
    fn completed(self, mut event: Value) -> Value {
        if self == Self::Message {
            event["logprobs"] = json!([]);
        }
        event
    }

    fn part(self, text: &str) -> Value {
        match self {
            Self::Reasoning => json!({"type": "summary_text", "text": text}),
            Self::Message => json!({
                "type": "output_text", "text": text, "annotations": [], "logprobs": [],
            }),
        }
    }

    /// The item with its parts.
    fn item(self, id: &str, parts: &[Value], status: &str) -> Value {
        match self {
            Self::Reasoning => json!({
                "type": "reasoning", "id": format!("rs_{id}"), "summary": parts,
            }),
            Self::Message => json!({
                "type": "message", "id": format!("msg_{id}"), "role": "assistant",
                "status": status, "content": parts,
            }),
        }
    }
}

/// An item that is not complete.
#[derive(Debug, Clone, PartialEq)]
struct Open {
    kind: Kind,
    /// As far as it was said; no longer than an answer of a model may be.
    text: String,
}

/// Responses.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Responses {
    /// What is repeated of the request.
    repeated: Body,
    /// What the request asks of its place.
    wish: Wish,
    /// Where it is kept.
    kept: Option<Kept>,
    /// Number of the next event.
    number: u64,
    open: Option<Open>,
    /// The items that are complete.
    output: Vec<Value>,
}

impl Responses {
    /// An answer that nothing was sent of.
    fn new(repeated: Body) -> Self {
        Self {
            repeated,
            wish: Wish::default(),
            kept: None,
            number: 0,
            open: None,
            output: Vec::new(),
        }
    }

    fn event(&mut self, kind: &str, mut event: Value, events: &mut Vec<Value>) {
        event["type"] = kind.into();
        event["sequence_number"] = self.number.into();
        self.number += 1;
        events.push(event);
    }

    /// A piece of the item of a kind, which is opened first where another one is open, or none.
    fn piece(&mut self, head: &Head, kind: Kind, text: &str, events: &mut Vec<Value>) {
        if self.open.as_ref().is_none_or(|open| open.kind != kind) {
            self.close(head, events);
            let id = self.id(head);
            let item = kind.item(&id, &[], "in_progress");
            let at = self.output.len();
            let name = item["id"].clone();
            let added = json!({"output_index": at, "item": item});
            self.event("response.output_item.added", added, events);
            let part = json!({
                "item_id": name, "output_index": at, kind.index(): 0, "part": kind.part(""),
            });
            self.event(&format!("{}.added", kind.part_event()), part, events);
            self.open = Some(Open {
                kind,
                text: String::new(),
            });
        }
        if let Some(open) = &mut self.open
            && open.text.len() + text.len() <= limits::MODEL_TEXT
        {
            open.text.push_str(text);
        }
        let delta = json!({
            "item_id": self.name(head, kind), "output_index": self.output.len(),
            kind.index(): 0, "delta": text,
        });
        let delta = kind.completed(delta);
        self.event(&format!("response.{}.delta", kind.word()), delta, events);
    }

    /// Ends the item that is open.
    fn close(&mut self, head: &Head, events: &mut Vec<Value>) {
        let Some(Open { kind, text }) = self.open.take() else {
            return;
        };
        let (at, name) = (self.output.len(), self.name(head, kind));
        let part = kind.part(&text);
        let place = json!({"item_id": name, "output_index": at, kind.index(): 0});
        let mut done = kind.completed(place.clone());
        done["text"] = text.into();
        self.event(&format!("response.{}.done", kind.word()), done, events);
        let mut ended = place;
        ended["part"] = part.clone();
        self.event(&format!("{}.done", kind.part_event()), ended, events);
        let item = kind.item(&self.id(head), &[part], "completed");
        self.complete(item, events);
    }

    fn complete(&mut self, item: Value, events: &mut Vec<Value>) {
        let done = json!({"output_index": self.output.len(), "item": item.clone()});
        self.event("response.output_item.done", done, events);
        self.output.push(item);
    }

    fn call(&mut self, head: &Head, call: &Value, events: &mut Vec<Value>) {
        let at = self.output.len();
        let item = self.called(&self.id(head), call);
        let takes_text = item.get("input").is_some();
        let (key, word) = match takes_text {
            true => ("input", "custom_tool_call_input"),
            false => ("arguments", "function_call_arguments"),
        };
        let mut begun = item.clone();
        begun["status"] = "in_progress".into();
        begun[key] = "".into();
        let added = json!({"output_index": at, "item": begun});
        self.event("response.output_item.added", added, events);
        let place = json!({"item_id": item["id"], "output_index": at});
        let (mut delta, mut done) = (place.clone(), place);
        delta["delta"] = item[key].clone();
        self.event(&format!("response.{word}.delta"), delta, events);
        done[key] = item[key].clone();
        if !takes_text {
            done["name"] = item["name"].clone();
        }
        self.event(&format!("response.{word}.done"), done, events);
        self.complete(item, events);
    }

    /// A call as an item: of a function, or of a tool that takes a text, either of which may be in a group.
    fn called(&self, id: &str, call: &Value) -> Value {
        let tools = self.repeated.get("tools").and_then(Value::as_array);
        let mut tools = tools.into_iter().flatten();
        let found = tools.find_map(|tool| namespaces::named(tool, &call["name"]));
        let (group, tool) = found.unwrap_or((None, &Value::Null));
        let mut item = match tool["type"] == custom::KIND {
            true => custom::item(id, call),
            false => called(id, call),
        };
        if let Some(group) = group {
            item["name"] = tool["name"].clone();
            item["namespace"] = group.clone();
        }
        item
    }

    /// What items are called: by the response, and by which of its items it is.
    fn id(&self, head: &Head) -> String {
        format!("{}_{}", head.id, self.output.len())
    }

    fn name(&self, head: &Head, kind: Kind) -> Value {
        kind.item(&self.id(head), &[], "")["id"].take()
    }

    fn told(&mut self, head: &Head, body: &Body, last: bool) -> Vec<Value> {
        let mut events = Vec::new();
        if self.number == 0 {
            for kind in ["response.created", "response.in_progress"] {
                let response = self.response(head, &Body::new(), "in_progress", &[]);
                self.event(kind, json!({"response": response}), &mut events);
            }
        }
        if let Some(thought) = said(body, "thinking") {
            self.piece(head, Kind::Reasoning, thought, &mut events);
        }
        for key in ["delta", "content"] {
            if let Some(text) = said(body, key) {
                self.piece(head, Kind::Message, text, &mut events);
            }
        }
        if last {
            self.close(head, &mut events);
            for call in calls(body) {
                self.call(head, call, &mut events);
            }
            let status = status(body);
            let response = self.response(head, body, status, &self.output);
            let kind = format!("response.{status}");
            self.event(&kind, json!({"response": response}), &mut events);
        }
        events
    }

    /// The response itself.
    fn response(&self, head: &Head, body: &Body, status: &str, output: &[Value]) -> Value {
        let incomplete = match status {
            "incomplete" => json!({"reason": "max_output_tokens"}),
            _ => Value::Null,
        };
        let mut response = json!({
            "id": kept::shown_id(&head.id), "object": "response", "created_at": head.created,
            "status": status, "background": false, "error": null, "incomplete_details": incomplete,
            "instructions": null, "max_output_tokens": null, "metadata": {},
            "model": head.model(body), "output": output, "parallel_tool_calls": true,
            "previous_response_id": null, "reasoning": {"effort": null, "summary": null},
            "store": false, "temperature": null, "text": {"format": {"type": "text"}},
            "tool_choice": "auto", "tools": [], "top_p": null, "truncation": "disabled",
            "usage": (status != "in_progress").then(|| usage(body)),
        });
        for (key, value) in &self.repeated {
            response[key] = value.clone();
        }
        if let Some(kept) = &self.kept {
            response["store"] = true.into();
            response["previous_response_id"] = json!(kept.previous);
            response["conversation"] = json!({"id": kept.session});
        }
        response
    }

    /// A response that is kept, as it stands: its answer, or how it goes without one.
    pub(crate) fn again(place: Kept, head: &Head, answer: Option<&Body>, status: &str) -> Value {
        let own = Self {
            kept: Some(place),
            ..Self::new(Body::new())
        };
        if let Some(answer) = answer {
            return own.whole(head, answer);
        }
        let mut response = own.response(head, &Body::new(), status, &[]);
        if status == "failed" {
            response["error"] =
                json!({"code": "server_error", "message": "the turn ended without an answer"});
        }
        response
    }
}

/// Whether an answer is all that the model would have said.
fn status(body: &Body) -> &'static str {
    match reason(body) {
        "length" => "incomplete",
        _ => "completed",
    }
}

fn usage(body: &Body) -> Value {
    let used = Used::of(body);
    json!({
        "input_tokens": used.input,
        "input_tokens_details": {"cached_tokens": used.cache_read},
        "output_tokens": used.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": used.total,
    })
}

fn called(id: &str, call: &Value) -> Value {
    json!({
        "type": "function_call", "id": format!("fc_{id}"), "call_id": call["id"],
        "name": call["name"], "arguments": call["arguments"], "status": "completed",
    })
}

impl Dialect for Responses {
    fn read(body: &Body) -> Result<(Asked, Self), Error> {
        let (asked, repeated, wish) = request::read(body)?;
        let own = Self {
            wish,
            ..Self::new(repeated)
        };
        Ok((asked, own))
    }

    fn wish(&self) -> Option<&Wish> {
        Some(&self.wish)
    }

    fn keep(&mut self, place: Kept) {
        self.kept = Some(place);
    }

    fn failure(fault: &CompatError, request_id: &str) -> Value {
        fault.body(request_id)
    }

    fn whole(&self, head: &Head, body: &Body) -> Value {
        let mut output = Vec::new();
        for (key, kind) in [("thinking", Kind::Reasoning), ("content", Kind::Message)] {
            if let Some(text) = said(body, key) {
                let id = format!("{}_{}", head.id, output.len());
                output.push(kind.item(&id, &[kind.part(text)], "completed"));
            }
        }
        for call in calls(body) {
            let id = format!("{}_{}", head.id, output.len());
            output.push(self.called(&id, call));
        }
        self.response(head, body, status(body), &output)
    }

    fn events(&mut self, head: &Head, body: &Body, last: bool) -> Vec<Bytes> {
        self.told(head, body, last).iter().map(named).collect()
    }

    fn broken(&mut self, head: &Head, fault: &CompatError, _request_id: &str) -> Vec<Bytes> {
        let mut response = self.response(head, &Body::new(), "failed", &self.output);
        response["error"] = json!({"code": fault.code(), "message": fault.message()});
        let mut events = Vec::new();
        self.event(
            "response.failed",
            json!({"response": response}),
            &mut events,
        );
        events.iter().map(named).collect()
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
            "tool_calls": [{"id": "c", "name": "add", "arguments": "{}"}],
            "finish_reason": "tool_calls", "model": "m",
            "usage": {"input": 7, "output": 2, "total": 9, "cache_read": 3},
        }))
    }

    #[test]
    fn a_whole_response_has_its_items_and_repeats_its_request() {
        let mut end = last();
        end.insert("content".into(), "hi".into());
        let repeated = body(json!({"metadata": {"a": "b"}, "temperature": 0.5}));
        let whole = Responses::new(repeated).whole(&head(), &end);
        assert_eq!(
            (
                &whole["object"],
                &whole["status"],
                &whole["model"],
                &whole["store"]
            ),
            (
                &json!("response"),
                &json!("completed"),
                &json!("m"),
                &json!(false)
            )
        );
        assert_eq!(whole["output"][0]["content"][0]["text"], "hi");
        assert_eq!(whole["output"][1]["call_id"], "c");
        assert_eq!(
            (&whole["metadata"]["a"], &whole["temperature"]),
            (&json!("b"), &json!(0.5))
        );
        assert_eq!(whole["usage"]["input_tokens_details"]["cached_tokens"], 3);
        let cut = body(json!({"content": "h", "finish_reason": "length"}));
        let whole = Responses::new(Body::new()).whole(&head(), &cut);
        assert_eq!(whole["incomplete_details"]["reason"], "max_output_tokens");
    }

    #[test]
    fn a_kept_response_says_where() {
        let place = || Kept {
            session: "s".into(),
            previous: Some("resp_s_0".into()),
        };
        let answer = body(json!({"content": "hi"}));
        let whole = Responses::again(place(), &head(), Some(&answer), "completed");
        assert_eq!(whole["output"][0]["content"][0]["text"], "hi");
        assert_eq!(
            (&whole["store"], &whole["conversation"]["id"]),
            (&json!(true), &json!("s"))
        );
        assert_eq!(whole["previous_response_id"], "resp_s_0");
        let failed = Responses::again(place(), &head(), None, "failed");
        assert_eq!(
            (&failed["status"], &failed["error"]["code"]),
            (&json!("failed"), &json!("server_error"))
        );
        let (_, mut asked) = Responses::read(&body(json!({"model": "m", "input": "q"}))).unwrap();
        assert_eq!(asked.wish(), Some(&Wish::default()));
        asked.keep(place());
        assert_eq!(asked.whole(&head(), &answer)["store"], true);
    }

    #[test]
    fn events_are_numbered_and_build_up_the_items_of_the_last_one() {
        let mut responses = Responses::new(Body::new());
        let parts = [
            (body(json!({"thinking": "hm"})), false),
            (body(json!({"delta": "h"})), false),
            (body(json!({"delta": "i"})), false),
            (last(), true),
        ];
        let events: Vec<Value> = parts
            .iter()
            .flat_map(|(body, last)| responses.told(&head(), body, *last))
            .collect();
        let kinds: Vec<&str> = events
            .iter()
            .map(|event| event["type"].as_str().unwrap())
            .collect();
        assert_eq!(
            kinds,
            [
                "response.created",
                "response.in_progress",
                "response.output_item.added",
                "response.reasoning_summary_part.added",
                "response.reasoning_summary_text.delta",
                "response.reasoning_summary_text.done",
                "response.reasoning_summary_part.done",
                "response.output_item.done",
                "response.output_item.added",
                "response.content_part.added",
                "response.output_text.delta",
                "response.output_text.delta",
                "response.output_text.done",
                "response.content_part.done",
                "response.output_item.done",
                "response.output_item.added",
                "response.function_call_arguments.delta",
                "response.function_call_arguments.done",
                "response.output_item.done",
                "response.completed",
            ]
        );
        let numbers = events.iter().map(|event| event["sequence_number"].as_u64());
        assert!(numbers.eq((0..20).map(Some)));
        let response = &events[19]["response"];
        assert_eq!(response["output"].as_array().unwrap().len(), 3);
        assert_eq!(response["output"][1]["content"][0]["text"], "hi");
        assert_eq!(events[10]["item_id"], response["output"][1]["id"]);
        // Strict clients read no event of a text without them.
        assert!(
            [10, 11, 12]
                .iter()
                .all(|at| events[*at]["logprobs"] == json!([]))
        );
        assert!(events[4].get("logprobs").is_none());
    }

    #[test]
    fn a_call_of_a_tool_that_takes_a_text_is_answered_as_one() {
        let repeated = body(json!({"tools": [
            {"type": "custom", "name": "add"}, {"type": "function", "name": "see"}]}));
        let end = body(json!({"finish_reason": "tool_calls", "tool_calls": [
            {"id": "c", "name": "add", "arguments": "{\"input\": \"1\\n2\"}"},
            {"id": "d", "name": "see", "arguments": "{}"}]}));
        let whole = Responses::new(repeated.clone()).whole(&head(), &end);
        let item = json!({"type": "custom_tool_call", "id": "ctc_1_0", "call_id": "c",
            "name": "add", "input": "1\n2", "status": "completed"});
        assert_eq!(whole["output"][0], item);
        assert_eq!(whole["output"][1]["type"], "function_call");
        let events = Responses::new(repeated).told(&head(), &end, true);
        let of = |kind: &str| events.iter().find(|event| event["type"] == kind).unwrap();
        assert_eq!(of("response.output_item.added")["item"]["input"], "");
        for (kind, key) in [("delta", "delta"), ("done", "input")] {
            let told = of(&format!("response.custom_tool_call_input.{kind}"));
            assert_eq!(
                (&told["item_id"], &told[key]),
                (&json!("ctc_1_0"), &json!("1\n2"))
            );
        }
        assert_eq!(of("response.output_item.done")["item"], item);
        assert_eq!(of("response.function_call_arguments.done")["name"], "see");
    }

    #[test]
    fn a_call_of_a_tool_in_a_group_is_answered_with_the_group_apart() {
        let repeated = body(json!({"tools": [{"type": "function", "name": "see"},
            {"type": "namespace", "name": "mcp__files__", "tools": [{"type": "function", "name": "read"}]}]}));
        let end = body(json!({"finish_reason": "tool_calls", "tool_calls": [
            {"id": "c", "name": "mcp__files__read", "arguments": "{}"},
            {"id": "d", "name": "see", "arguments": "{}"}]}));
        let whole = Responses::new(repeated).whole(&head(), &end);
        let (read, see) = (&whole["output"][0], &whole["output"][1]);
        assert_eq!(
            (&read["name"], &read["namespace"]),
            (&json!("read"), &json!("mcp__files__"))
        );
        assert_eq!((&see["name"], see.get("namespace")), (&json!("see"), None));
    }

    #[test]
    fn a_stream_that_breaks_off_ends_as_failed_with_what_is_complete() {
        let mut responses = Responses::new(Body::new());
        responses.told(&head(), &body(json!({"delta": "h"})), false);
        let fault = CompatError::new(502, "upstream_error", "it fails");
        let events = responses.broken(&head(), &fault, "r");
        let text = std::str::from_utf8(&events[0]).unwrap();
        assert!(
            text.starts_with("event: response.failed\ndata: {"),
            "{text}"
        );
        assert!(text.contains("\"code\":\"upstream_error\""), "{text}");
    }
}
