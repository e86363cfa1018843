//! `threads`: messages for listeners, and what comes back of them.

use serde_json::{Value, json};
use tg_schemas::Error;
use tg_schemas::msg::{ListenerInfo, ThreadMessage, ThreadTurn, ThreadsRequest, ThreadsResponse};

use super::fields::{Body, Fields, Reply};
use super::{About, Translate};

/// The `threads` service.
pub struct Threads;

impl Translate for Threads {
    type Question = ThreadsRequest;
    type Answer = ThreadsResponse;

    /// The payload goes on as it is: whether it is one is for whoever writes messages to say, in words that tell nothing.
    fn question(body: &Fields<'_>, about: &About) -> Result<Self::Question, Error> {
        Ok(ThreadsRequest {
            operation: about.operation.clone(),
            flow: body.text_or("flow", "default")?,
            thread: body.text("thread")?,
            to: body.text("to")?,
            r#type: body.text("type")?,
            payload: body
                .value("payload")
                .map_or_else(String::new, Value::to_string),
            console: body.flag("console")?,
            streaming: body.flag("streaming")?,
            limit: body.integer_or("limit", 0)?,
            after: body.text("after")?,
            grant: about.granted.clone(),
        })
    }

    fn part(part: Self::Answer, about: &About) -> Body {
        let reply = Reply::new();
        match about.operation.as_str() {
            "list-listeners" => reply
                .put(
                    "listeners",
                    part.listeners.into_iter().map(listener).collect::<Vec<_>>(),
                )
                .put_truthy("next", part.next),
            "list-refused-listeners" => reply
                .put(
                    "refused",
                    part.listeners.into_iter().map(refused).collect::<Vec<_>>(),
                )
                .put_truthy("next", part.next),
            "close-thread" => reply.put("closed", part.closed),
            "show-thread" => reply
                .put("chain", part.chain)
                .put_truthy(
                    "turns",
                    part.turns.into_iter().map(turn).collect::<Vec<_>>(),
                )
                .put("in-progress", part.in_progress),
            _ => reply
                .put_truthy("thread", part.thread)
                .put_truthy("source", part.source)
                .put_truthy("chunk", part.chunk)
                .put_truthy(
                    "messages",
                    part.messages.into_iter().map(message).collect::<Vec<_>>(),
                )
                .put("end-of-stream", part.end_of_stream),
        }
        .done()
    }
}

fn listener(one: ListenerInfo) -> Value {
    json!({"name": one.name, "description": one.description, "types": one.types, "agent": one.agent})
}

fn refused(one: ListenerInfo) -> Value {
    json!({"name": one.name, "why": one.why})
}

fn turn(one: ThreadTurn) -> Value {
    let row = Reply::new()
        .put("listener", one.listener)
        .put("since-ms", one.since_ms)
        .put_truthy("waits-for", one.waits_for)
        .put_truthy("silent-ms", one.silent_ms);
    Value::Object(row.done())
}

fn message(one: ThreadMessage) -> Value {
    json!({"thread": one.thread, "from": one.from, "type": one.r#type, "payload": one.payload})
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;

    #[test]
    fn a_payload_goes_on_as_it_is() {
        for (payload, text) in [
            (json!({"b": 1, "a": [null]}), r#"{"b":1,"a":[null]}"#),
            (json!("x"), r#""x""#),
        ] {
            let body = json!({"to": "greeter", "type": "textinput", "payload": payload});
            let asked = question::<Threads>(body, "send-message").unwrap();
            assert_eq!(
                (asked.payload.as_str(), asked.flow.as_str()),
                (text, "default")
            );
        }
        let asked = question::<Threads>(json!({}), "send-message").unwrap();
        assert_eq!(asked.payload, "");
    }

    #[test]
    fn a_grant_is_of_the_key_and_never_of_the_body() {
        let body = json!({"to": "agent", "payload": {}, "grant": ["pay"], "roles": ["admin"]});
        let asked = question::<Threads>(body.clone(), "send-message").unwrap();
        assert!(asked.grant.is_empty(), "{asked:?}");
        let about = About {
            granted: vec!["mail".to_owned()],
            ..About::default()
        };
        let body = body.as_object().cloned().unwrap();
        let asked = Threads::question(&Fields::new(&body), &about).unwrap();
        assert_eq!(asked.grant, ["mail"]);
    }

    #[test]
    fn each_operation_shows_its_own() {
        let told = ThreadsResponse {
            thread: "t".to_owned(),
            messages: vec![ThreadMessage {
                from: "greeter".to_owned(),
                r#type: "textinput".to_owned(),
                ..ThreadMessage::default()
            }],
            end_of_stream: true,
            ..ThreadsResponse::default()
        };
        let shown = part::<Threads>(told.clone(), "send-message");
        let message = json!({"thread": "", "from": "greeter", "type": "textinput", "payload": {}});
        assert_eq!(
            shown,
            json!({"thread": "t", "messages": [message], "end-of-stream": true})
        );
        assert_eq!(
            part::<Threads>(told.clone(), "show-thread"),
            json!({"chain": [], "in-progress": 0})
        );
        let runs = ThreadTurn {
            listener: "greeter".to_owned(),
            since_ms: 5,
            waits_for: "process".to_owned(),
            silent_ms: 0,
        };
        let running = ThreadsResponse {
            turns: vec![runs],
            in_progress: 2,
            ..told.clone()
        };
        let turn = json!({"listener": "greeter", "since-ms": 5, "waits-for": "process"});
        assert_eq!(
            part::<Threads>(running, "show-thread"),
            json!({"chain": [], "turns": [turn], "in-progress": 2})
        );
        assert_eq!(
            part::<Threads>(told.clone(), "close-thread"),
            json!({"closed": 0})
        );
        let refused = ListenerInfo {
            name: "mute".to_owned(),
            why: "the description is required".to_owned(),
            ..ListenerInfo::default()
        };
        let listed = ThreadsResponse {
            listeners: vec![refused],
            ..told
        };
        let shown = json!({"name": "mute", "why": "the description is required"});
        assert_eq!(
            part::<Threads>(listed, "list-refused-listeners"),
            json!({"refused": [shown]})
        );
    }
}
