//! The events of a turn as a LangGraph stream: what each of them says in the modes that the client asked for.

use bytes::Bytes;
use serde_json::{Value, json};

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
}

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
            "token-reset" => {
                self.resets += 1;
                Vec::new()
            }
            "tool-call" if self.modes.updates => {
                let mut message = plain("ai", &self.message(), "");
                message["tool_calls"] = json!([{"name": text("toolName"), "args": data.get("args"),
                    "id": text("callId"), "type": "tool_call"}]);
                vec![update("agent", &message)]
            }
            "tool-result" if self.modes.updates || self.modes.tuples => {
                let result = data.get("result").and_then(Value::as_str);
                let id = format!("result-{}", text("callId"));
                let mut message = plain("tool", &id, result.unwrap_or_default());
                message["name"] = text("toolName").into();
                message["tool_call_id"] = text("callId").into();
                message["status"] = "success".into();
                let update = self.modes.updates.then(|| update("tools", &message));
                let piece = self.modes.tuples.then(|| self.piece(&message));
                update.into_iter().chain(piece).collect()
            }
            "done" if self.modes.updates => {
                let message = plain("ai", &self.message(), text("content"));
                vec![update("agent", &message)]
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

    /// A piece of a message, with where it comes from.
    fn piece(&self, piece: &Value) -> Bytes {
        let of = json!({"run_id": self.run, "thread_id": self.thread, "assistant_id": self.agent,
            "graph_id": self.agent, "langgraph_node": "agent"});
        event("messages", &json!([piece, of]))
    }
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
