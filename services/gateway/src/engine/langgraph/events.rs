//! The events of a turn as a LangGraph stream: what each of them says in the modes that the client asked for.

use bytes::Bytes;
use serde_json::{Value, json};
use tg_schemas::limits;

use super::asked::Modes;
use super::shown::plain;
use crate::engine::event;
use crate::engine::translate::Body;

/// A run whose events are told.
#[derive(Debug)]
pub(crate) struct Told {
    modes: Modes,
    thread: String,
    run: String,
    agent: String,
    /// How often pieces were taken back. What follows is another message: clients join pieces by the id.
    resets: usize,
    /// The message that is being written, where it is sent whole; no longer than an answer of a model may be.
    written: String,
    /// How much of it was sent.
    shown: usize,
}

/// A message is sent anew once a sixteenth of it is new, so that a long one takes at most 17 times its bytes.
const NEW: usize = 16;

/// An event.
pub(crate) fn event(name: &str, data: &Value) -> Bytes {
    event::event(&["event: ", name, "\n"], data)
}

/// The last event of a stream.
pub(crate) fn end() -> Bytes {
    event("end", &Value::Null)
}

/// The event that a failure is.
pub(crate) fn failed(failure: &Body) -> Bytes {
    let of = |key: &str| failure.get(key).cloned().unwrap_or_default();
    event(
        "error",
        &json!({"error": of("code"), "message": of("message")}),
    )
}

impl Told {
    /// Of a run.
    pub(crate) fn new(modes: Modes, (thread, run): (&str, &str), agent: &str) -> Self {
        Self {
            modes,
            thread: thread.to_owned(),
            run: run.to_owned(),
            agent: agent.to_owned(),
            resets: 0,
            written: String::new(),
            shown: 0,
        }
    }

    /// Whether it tells all messages of the thread.
    pub(crate) fn tells_values(&self) -> bool {
        self.modes.values
    }

    /// The first event.
    pub(crate) fn begun(&self) -> Bytes {
        event("metadata", &json!({"run_id": self.run, "attempt": 1}))
    }

    /// What an event of the turn is: in some modes nothing.
    pub(crate) fn take(&mut self, name: &str, data: &Body) -> Vec<Bytes> {
        let text = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
        match name {
            "token" if self.modes.tuples => {
                let mut piece = plain("AIMessageChunk", &self.message(), text("delta"));
                piece["tool_calls"] = json!([]);
                piece["tool_call_chunks"] = json!([]);
                vec![self.piece(&piece)]
            }
            "token" if self.modes.messages => self.write(text("delta")),
            "token-reset" => {
                self.resets += 1;
                self.written.clear();
                self.shown = 0;
                Vec::new()
            }
            "tool-call" => {
                let call = json!([{"name": text("toolName"), "args": data.get("args"),
                    "id": text("callId"), "type": "tool_call"}]);
                let of = |id: &str| {
                    let mut message = plain("ai", id, "");
                    message["tool_calls"] = call.clone();
                    message
                };
                let modes = self.modes;
                let told = modes.updates.then(|| update("agent", &of(&self.message())));
                // The answer that follows is another message.
                let id = format!("call-{}", text("callId"));
                let whole = modes.messages.then(|| complete(&of(&id)));
                told.into_iter().chain(whole).collect()
            }
            "tool-result" => {
                let message = result(data);
                let modes = self.modes;
                let told = modes.updates.then(|| update("tools", &message));
                let piece = modes.tuples.then(|| self.piece(&message));
                let whole = modes.messages.then(|| complete(&message));
                told.into_iter().chain(piece).chain(whole).collect()
            }
            "done" => {
                let message = plain("ai", &self.message(), text("content"));
                let modes = self.modes;
                let told = modes.updates.then(|| update("agent", &message));
                let whole = modes.messages.then(|| complete(&message));
                told.into_iter().chain(whole).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Id of the message that is being written.
    fn message(&self) -> String {
        match self.resets {
            0 => format!("run-{}", self.run),
            more => format!("run-{}-{more}", self.run),
        }
    }

    /// Takes a piece of the message that is being written, and sends that as far as it is written.
    fn write(&mut self, piece: &str) -> Vec<Bytes> {
        let length = self.written.len() + piece.len();
        if piece.is_empty() || length > limits::MODEL_TEXT {
            return Vec::new();
        }
        let is_first = self.written.is_empty();
        self.written.push_str(piece);
        if (length - self.shown) * NEW < length {
            return Vec::new();
        }
        self.shown = length;
        let id = self.message();
        let mut message = plain("ai", &id, &self.written);
        message["tool_calls"] = json!([]);
        let first = is_first.then(|| {
            let of = json!({id: {"metadata": self.origin()}});
            event("messages/metadata", &of)
        });
        let partial = event("messages/partial", &json!([message]));
        first.into_iter().chain([partial]).collect()
    }

    /// A piece of a message, with where it comes from.
    fn piece(&self, piece: &Value) -> Bytes {
        event("messages", &json!([piece, self.origin()]))
    }

    /// Where messages come from.
    fn origin(&self) -> Value {
        json!({"run_id": self.run, "thread_id": self.thread, "assistant_id": self.agent,
            "graph_id": self.agent, "langgraph_node": "agent"})
    }
}

/// What a tool returned.
fn result(data: &Body) -> Value {
    let text = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
    let id = format!("result-{}", text("callId"));
    let mut message = plain("tool", &id, text("result"));
    message["name"] = text("toolName").into();
    message["tool_call_id"] = text("callId").into();
    message["status"] = "success".into();
    message
}

/// A message that is all there.
fn complete(message: &Value) -> Bytes {
    event("messages/complete", &json!([message]))
}

/// A message that a part of the agent added.
fn update(node: &str, message: &Value) -> Bytes {
    event("updates", &json!({node: {"messages": [message]}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(value: Value) -> Body {
        value.as_object().cloned().unwrap()
    }

    fn told(modes: Modes) -> Told {
        Told::new(modes, ("t", "r"), "a")
    }

    fn read(event: &Bytes) -> (String, Value) {
        let text = String::from_utf8(event.to_vec()).unwrap();
        let rest = text.strip_prefix("event: ").unwrap();
        let (name, data) = rest.trim_end().split_once("\ndata: ").unwrap();
        (name.to_owned(), serde_json::from_str(data).unwrap())
    }

    #[test]
    fn pieces_that_are_taken_back_are_of_another_message_than_what_follows() {
        let mut told = told(Modes {
            tuples: true,
            ..Modes::default()
        });
        let token = body(json!({"delta": "x"}));
        let (name, first) = read(&told.take("token", &token)[0]);
        assert_eq!(
            (name.as_str(), &first[0]["content"]),
            ("messages", &json!("x"))
        );
        assert_eq!(first[1]["thread_id"], "t");
        assert!(told.take("token-reset", &Body::new()).is_empty());
        let (_, second) = read(&told.take("token", &token)[0]);
        assert_ne!(first[0]["id"], second[0]["id"]);
    }

    #[test]
    fn a_message_is_told_as_far_as_it_is_written_and_then_whole() {
        let mut told = told(Modes {
            messages: true,
            ..Modes::default()
        });
        let token = |text: &str| body(json!({"delta": text}));
        let first = told.take("token", &token("ab"));
        let (name, of) = read(&first[0]);
        assert_eq!(
            (name.as_str(), &of["run-r"]["metadata"]["thread_id"]),
            ("messages/metadata", &json!("t"))
        );
        let (name, partial) = read(&told.take("token", &token("c"))[0]);
        assert_eq!(
            (name.as_str(), &partial[0]["content"], &partial[0]["id"]),
            ("messages/partial", &json!("abc"), &json!("run-r"))
        );
        // A long one is sent anew only where much of it is new.
        let long = "x".repeat(1_000);
        assert_eq!(told.take("token", &token(&long)).len(), 1);
        assert!(told.take("token", &token("y")).is_empty());
        assert!(told.take("token-reset", &Body::new()).is_empty());
        let (_, partial) = read(&told.take("token", &token("d"))[1]);
        assert_eq!(
            (&partial[0]["content"], &partial[0]["id"]),
            (&json!("d"), &json!("run-r-1"))
        );
        let (name, whole) = read(&told.take("done", &body(json!({"content": "de"})))[0]);
        assert_eq!(
            (name.as_str(), &whole[0]["content"], &whole[0]["id"]),
            ("messages/complete", &json!("de"), &json!("run-r-1"))
        );
        let call = body(json!({"toolName": "add", "args": {}, "callId": "c"}));
        let (_, whole) = read(&told.take("tool-call", &call)[0]);
        assert_eq!(whole[0]["tool_calls"][0]["name"], "add");
    }

    #[test]
    fn only_what_was_asked_for_is_told() {
        let mut quiet = told(Modes::default());
        let mut loud = told(Modes {
            updates: true,
            ..Modes::default()
        });
        for (name, data, node) in [
            (
                "tool-call",
                json!({"toolName": "add", "args": {}, "callId": "c"}),
                "agent",
            ),
            (
                "tool-result",
                json!({"toolName": "add", "callId": "c", "result": "2"}),
                "tools",
            ),
            ("done", json!({"content": "two"}), "agent"),
        ] {
            let data = body(data);
            assert!(quiet.take(name, &data).is_empty(), "{name}");
            let (kind, told) = read(&loud.take(name, &data)[0]);
            assert_eq!(kind, "updates");
            assert!(told[node]["messages"][0].is_object(), "{told}");
        }
        let failure = body(json!({"code": "upstream_error", "message": "m"}));
        let (name, told) = read(&failed(&failure));
        assert_eq!(
            (name.as_str(), &told["error"]),
            ("error", &json!("upstream_error"))
        );
    }
}
