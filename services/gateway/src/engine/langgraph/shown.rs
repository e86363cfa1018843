//! Agents, sessions and messages as LangGraph clients read them. What those have and sessions lack is there and empty.

use serde_json::{Map, Value, json};
use tg_schemas::limits::CHAT_BODY;
use tg_schemas::operations::{AgentConfig, AgentSummary, Session, SessionMessage, ToolCall, Usage};

/// When agents were made nobody knows: their files are read at each start.
const EPOCH: &str = "1970-01-01T00:00:00+00:00";
/// The kind of the message that a user writes.
const HUMAN: &str = "human";
/// The kind of the message that an agent writes.
const AI: &str = "ai";

/// An agent in a listing.
pub(crate) fn listed(agent: &AgentSummary) -> Value {
    assistant(
        (&agent.name, &agent.description),
        json!({"model": agent.model, "tools": agent.tools, "rag_index": agent.rag_index}),
    )
}

/// An agent.
pub(crate) fn agent(agent: &AgentConfig) -> Value {
    assistant(
        (&agent.name, &agent.description),
        json!({"model": agent.model, "tools": agent.tools, "rag_index": agent.rag_index}),
    )
}

fn assistant((name, description): (&str, &str), mut metadata: Value) -> Value {
    // So that clients find it which look for assistants that nobody made by hand.
    metadata["created_by"] = "system".into();
    json!({
        "assistant_id": name, "graph_id": name, "name": name, "description": description,
        "config": {}, "context": {}, "metadata": metadata, "version": 1,
        "created_at": EPOCH, "updated_at": EPOCH,
    })
}

/// The gateway itself, as clients look whether it is there.
pub(crate) fn server() -> Value {
    let flags = json!({"assistants": true, "crons": false, "langsmith": false});
    json!({"version": env!("CARGO_PKG_VERSION"), "flags": flags})
}

/// A thread.
pub(crate) fn thread(session: &Session, messages: &[SessionMessage], busy: bool) -> Value {
    let values = match messages.is_empty() {
        true => Value::Null,
        false => values(messages),
    };
    json!({
        "thread_id": session.id, "created_at": session.created_at, "updated_at": session.updated_at,
        "state_updated_at": session.updated_at,
        "metadata": {"graph_id": session.agent, "assistant_id": session.agent},
        "config": {}, "status": if busy { "busy" } else { "idle" }, "error": null,
        "values": values, "interrupts": {},
    })
}

/// The messages of a thread.
pub(crate) fn values(messages: &[SessionMessage]) -> Value {
    let shown: Vec<Value> = messages
        .iter()
        .enumerate()
        .map(|(at, one)| message(one, messages.get(..at).unwrap_or_default()))
        .collect();
    json!({"messages": shown})
}

/// A message, behind those before it.
fn message(one: &SessionMessage, before: &[SessionMessage]) -> Value {
    let text = one.content.as_deref().unwrap_or_default();
    let mut shown = plain(kind(&one.role), &one.id, text);
    match kind(&one.role) {
        AI => {
            let calls = one.tool_calls.as_deref().unwrap_or_default();
            shown["tool_calls"] = calls.iter().map(call).collect();
            shown["invalid_tool_calls"] = json!([]);
            shown["usage_metadata"] = one.usage.map_or(Value::Null, |used| usage(&used));
        }
        "tool" => {
            shown["name"] = json!(one.tool_name);
            // A result stands directly behind its call.
            let calls = before.last().and_then(|last| last.tool_calls.as_deref());
            let id = calls.and_then(|calls| calls.last()).map(|call| &call.id);
            shown["tool_call_id"] = json!(id.cloned().unwrap_or_default());
            shown["status"] = "success".into();
        }
        _ => {}
    }
    shown
}

fn kind(role: &str) -> &'static str {
    match role {
        "assistant" => AI,
        "tool" => "tool",
        "system" => "system",
        _ => HUMAN,
    }
}

/// A message with what all of them have.
pub(crate) fn plain(kind: &str, id: &str, text: &str) -> Value {
    json!({
        "type": kind, "id": id, "content": text, "name": null, "additional_kwargs": {},
        "response_metadata": {},
    })
}

fn call(call: &ToolCall) -> Value {
    let arguments = serde_json::from_slice::<Map<String, Value>>(call.arguments.as_bytes());
    json!({"name": call.name, "args": arguments.unwrap_or_default(), "id": call.id,
        "type": "tool_call"})
}

fn usage(used: &Usage) -> Value {
    json!({"input_tokens": used.input, "output_tokens": used.output, "total_tokens": used.total})
}

/// A thread after some of its messages.
pub(crate) fn state(session: &Session, messages: &[SessionMessage]) -> Value {
    let last = messages.last();
    let at = last.map_or(&*session.created_at, |last| &*last.created_at);
    let said = messages.iter().rev().find(|one| !one.synthetic);
    let answered = said.is_none_or(|said| kind(&said.role) == AI && calls_nothing(said));
    let next = match answered {
        true => json!([]),
        false => json!(["agent"]),
    };
    json!({
        "values": values(messages), "next": next, "tasks": [], "interrupts": [],
        "checkpoint": {"thread_id": session.id, "checkpoint_ns": "",
            "checkpoint_id": last.map(|last| &last.id), "checkpoint_map": null},
        "metadata": {"graph_id": session.agent}, "created_at": at, "parent_checkpoint": null,
    })
}

fn calls_nothing(message: &SessionMessage) -> bool {
    message.tool_calls.as_ref().is_none_or(Vec::is_empty)
}

/// A thread as it was, the newest state first: one at the end of each turn, and no more than one answer holds. A state is named
/// by the last of its messages.
pub(crate) fn history(
    session: &Session,
    messages: &[SessionMessage],
    (limit, before): (usize, Option<&str>),
) -> Value {
    let ends = (1..=messages.len()).rev().filter(|end| {
        let next = messages.get(*end);
        next.is_none_or(|next| kind(&next.role) == HUMAN)
    });
    let ends = ends.skip_while(|end| {
        let last = messages.get(end - 1);
        before.is_some_and(|before| last.is_some_and(|last| last.id != before))
    });
    let ends = ends.skip(usize::from(before.is_some())).take(limit);
    let mut bytes = 0;
    let states = ends.map_while(|end| {
        let some = messages.get(..end).unwrap_or_default();
        let own: usize = some.iter().map(size).sum();
        bytes += own;
        (bytes <= CHAT_BODY || bytes == own).then(|| state(session, some))
    });
    states.collect()
}

/// What a message takes in memory beside its texts, as it is shown.
const SHOWN: usize = 2_048;

/// About how many bytes a message has while it is shown.
pub(crate) fn size(message: &SessionMessage) -> usize {
    let calls = message.tool_calls.iter().flatten();
    let calls: usize = calls.map(|call| call.arguments.len()).sum();
    SHOWN + message.content.as_ref().map_or(0, String::len) + calls
}

/// How a run goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// It was answered.
    Success,
    /// It has no answer yet, or none any more.
    Unanswered,
}

/// How a run went, which is the turn that the message with its id began. `None`: there is no such message of the user.
pub(crate) fn status(messages: &[SessionMessage], run: &str) -> Option<Status> {
    let of_user = |one: &SessionMessage| kind(&one.role) == HUMAN;
    let at = messages
        .iter()
        .position(|one| one.id == run && of_user(one))?;
    let rest = messages.get(at + 1..).unwrap_or_default();
    let mut own = rest.iter().take_while(|one| !of_user(one));
    // What comes of a task is announced behind the turn that gave it, and answers nothing.
    let answered = own.any(|one| kind(&one.role) == AI && !one.synthetic && calls_nothing(one));
    Some(match answered {
        true => Status::Success,
        false => Status::Unanswered,
    })
}

/// The runs of a thread, the newest first.
pub(crate) fn runs(messages: &[SessionMessage]) -> impl Iterator<Item = &str> {
    let of_user = messages.iter().rev().filter(|one| kind(&one.role) == HUMAN);
    of_user.map(|one| one.id.as_str())
}

/// A run.
pub(crate) fn run(session: &Session, messages: &[SessionMessage], id: &str, status: &str) -> Value {
    let begun = messages.iter().find(|one| one.id == id);
    let at = begun.map_or(&*session.updated_at, |begun| &*begun.created_at);
    json!({
        "run_id": id, "thread_id": session.id, "assistant_id": session.agent, "created_at": at,
        "updated_at": session.updated_at, "status": status, "metadata": {}, "kwargs": {},
        "multitask_strategy": "enqueue",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(id: &str, role: &str) -> SessionMessage {
        SessionMessage {
            id: id.to_owned(),
            role: role.to_owned(),
            content: Some(format!("text of {id}")),
            ..SessionMessage::default()
        }
    }

    fn calls(id: &str) -> SessionMessage {
        SessionMessage {
            tool_calls: Some(vec![ToolCall {
                id: "c".to_owned(),
                name: "add".to_owned(),
                arguments: r#"{"a": 1}"#.to_owned(),
            }]),
            ..said(id, "assistant")
        }
    }

    fn two_turns() -> Vec<SessionMessage> {
        vec![
            said("1", "user"),
            calls("2"),
            SessionMessage {
                tool_name: Some("add".to_owned()),
                ..said("3", "tool")
            },
            said("4", "assistant"),
            said("5", "user"),
        ]
    }

    #[test]
    fn messages_are_of_kinds_that_clients_know() {
        let shown = values(&two_turns());
        let all = shown["messages"].as_array().unwrap();
        let kinds: Vec<&Value> = all.iter().map(|one| &one["type"]).collect();
        assert_eq!(kinds, ["human", "ai", "tool", "ai", "human"]);
        assert_eq!(all[1]["tool_calls"][0]["args"], json!({"a": 1}));
        assert_eq!(all[2]["tool_call_id"], "c");
    }

    #[test]
    fn a_state_stands_at_the_end_of_each_turn() {
        let session = Session::default();
        let ids = |value: &Value| -> Vec<Value> {
            let all = value.as_array().unwrap().iter();
            all.map(|one| one["checkpoint"]["checkpoint_id"].clone())
                .collect()
        };
        let all = history(&session, &two_turns(), (10, None));
        assert_eq!(ids(&all), ["5", "4"]);
        assert_eq!(all[0]["next"], json!(["agent"]));
        assert_eq!(all[1]["next"], json!([]));
        let earlier = history(&session, &two_turns(), (10, Some("5")));
        assert_eq!(ids(&earlier), ["4"]);
        assert_eq!(ids(&history(&session, &two_turns(), (1, None))), ["5"]);
        assert_eq!(history(&session, &two_turns(), (10, Some("x"))), json!([]));
    }

    #[test]
    fn a_run_is_a_success_once_its_turn_has_an_answer() {
        let all = two_turns();
        assert_eq!(status(&all, "1"), Some(Status::Success));
        assert_eq!(status(&all, "5"), Some(Status::Unanswered));
        assert_eq!(status(&all, "4"), None);
        assert_eq!(runs(&all).collect::<Vec<_>>(), ["5", "1"]);
        // Calling a tool is no answer.
        assert_eq!(status(&all[..3], "1"), Some(Status::Unanswered));
    }

    #[test]
    fn an_announcement_is_not_the_answer_of_a_turn() {
        let announced = SessionMessage {
            synthetic: true,
            ..said("6", "assistant")
        };
        let mut all = two_turns();
        all.push(announced.clone());
        assert_eq!(status(&all, "5"), Some(Status::Unanswered));
        let next = |all: &[SessionMessage]| state(&Session::default(), all)["next"].clone();
        assert_eq!(next(&all), json!(["agent"]));
        all.truncate(4);
        all.push(announced.clone());
        assert_eq!(next(&all), json!([]));
        assert_eq!(next(&[announced]), json!([]));
    }
}
