//! Requests of LangGraph clients. Keys that would change what a run does and have no counterpart here are refused by name;
//! `config`, `context` and `metadata` are read past.

use serde_json::Value;
use tg_schemas::operations::{Failure, WhenBusy};

use crate::engine::translate::Body;

/// States of a thread that a history has at most, and as many where none are named.
const STATES: u64 = 100;
const STATES_USUAL: u64 = 10;
/// Assistants of a page at most, and as many where none are named.
const ASSISTANTS: u64 = 1_000;
const ASSISTANTS_USUAL: u64 = 10;

/// Whether a key says something.
fn says(body: &Body, key: &str) -> bool {
    match body.get(key) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::Array(list)) => !list.is_empty(),
        Some(Value::Object(object)) => !object.is_empty(),
        Some(_) => true,
    }
}

pub(super) fn text<'a>(body: &'a Body, key: &str) -> Result<Option<&'a str>, Failure> {
    match body.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Failure::invalid(key, "must be a text")),
    }
}

pub(super) fn number(body: &Body, key: &str, (usual, most): (u64, u64)) -> Result<usize, Failure> {
    let number = match body.get(key) {
        None | Some(Value::Null) => Some(usual),
        Some(value) => value.as_u64().filter(|number| *number <= most),
    };
    let number = number.and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| Failure::invalid(key, &format!("must be a whole number from 0 to {most}")))
}

pub(super) fn refuse(body: &Body, keys: &[&str]) -> Result<(), Failure> {
    match keys.iter().find(|key| says(body, key)) {
        Some(key) => Err(Failure::invalid(key, "is not served here")),
        None => Ok(()),
    }
}

/// What a stream is to report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Modes {
    /// The messages of the thread, at the beginning and at the end.
    pub(crate) values: bool,
    /// The messages that are new, one after the other.
    pub(crate) updates: bool,
    /// Pieces of the answer.
    pub(crate) tuples: bool,
    /// The message that is written, as far as it is written; not beside its pieces.
    pub(crate) messages: bool,
}

/// Modes of events that agents here never have: beside others they mean nothing.
const WITHOUT_EVENTS: [&str; 6] = [
    "checkpoints",
    "debug",
    "events",
    "lifecycle",
    "tasks",
    "tools",
];

impl Modes {
    fn read(body: &Body) -> Result<Self, Failure> {
        let wrong = || {
            let reason = "must be of values, updates, messages, messages-tuple and custom";
            Failure::invalid("stream_mode", reason)
        };
        let named: Vec<&Value> = match body.get("stream_mode") {
            None | Some(Value::Null) => return Ok(Self::of_values()),
            Some(Value::Array(list)) => list.iter().collect(),
            Some(one) => vec![one],
        };
        let mut modes = Self::default();
        let is_known = |one: &&Value| {
            one.as_str()
                .is_some_and(|one| !WITHOUT_EVENTS.contains(&one))
        };
        let is_beside = named.iter().any(is_known);
        for one in named {
            match one.as_str().ok_or_else(wrong)? {
                "values" => modes.values = true,
                "updates" => modes.updates = true,
                "messages-tuple" => modes.tuples = true,
                "messages" => modes.messages = true,
                // Agents here write no events of their own.
                "custom" => {}
                other if is_beside && WITHOUT_EVENTS.contains(&other) => {}
                _ => return Err(wrong()),
            }
        }
        modes.messages &= !modes.tuples;
        Ok(modes)
    }

    /// As where none are named.
    pub(crate) fn of_values() -> Self {
        Self {
            values: true,
            ..Self::default()
        }
    }
}

/// A run that is to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    /// The agent that answers.
    pub(crate) assistant: String,
    /// What the user says.
    pub(crate) message: String,
    /// What a stream of it reports.
    pub(crate) modes: Modes,
    /// Whether the thread begins with it, where there is none.
    pub(crate) creates: bool,
    /// What it does while another run of the thread is in progress.
    pub(crate) when_busy: WhenBusy,
    /// The state that it goes on from, which has to be the last one.
    pub(crate) head: Option<String>,
    /// Whether it ends where the client leaves that reads its events.
    pub(crate) cancels: bool,
}

/// What a run cannot be told here.
const NOT_SERVED: &[&str] = &[
    "command",
    "interrupt_before",
    "interrupt_after",
    "webhook",
    "after_seconds",
    "feedback_keys",
];

impl Run {
    /// Reads a run of a thread.
    ///
    /// # Errors
    /// A key is missing, cannot be what it is, or is not served.
    pub(crate) fn read(body: &Body) -> Result<Self, Failure> {
        refuse(body, NOT_SERVED)?;
        if text(body, "on_completion")?.is_some_and(|text| text != "delete") {
            return Err(Failure::invalid("on_completion", "must be delete"));
        }
        let assistant = text(body, "assistant_id")?.filter(|name| !name.is_empty());
        let assistant = assistant.ok_or_else(|| Failure::invalid("assistant_id", "is required"))?;
        Ok(Self {
            assistant: assistant.to_owned(),
            message: message(body)?,
            modes: Modes::read(body)?,
            creates: match text(body, "if_not_exists")? {
                None | Some("reject") => false,
                Some("create") => true,
                Some(_) => {
                    return Err(Failure::invalid(
                        "if_not_exists",
                        "must be reject or create",
                    ));
                }
            },
            when_busy: match text(body, "multitask_strategy")? {
                None | Some("enqueue") => WhenBusy::Queue,
                Some("reject") => WhenBusy::Refuse,
                Some("interrupt") => WhenBusy::Interrupt,
                Some(_) => {
                    let reason = "must be enqueue, reject or interrupt";
                    return Err(Failure::invalid("multitask_strategy", reason));
                }
            },
            head: head(body)?,
            cancels: match text(body, "on_disconnect")? {
                None | Some("continue") => false,
                Some("cancel") => true,
                Some(_) => {
                    return Err(Failure::invalid(
                        "on_disconnect",
                        "must be continue or cancel",
                    ));
                }
            },
        })
    }
}

/// The state that a run goes on from. Clients name the last one that they know, with each run.
fn head(body: &Body) -> Result<Option<String>, Failure> {
    let place = match body.get("checkpoint") {
        None | Some(Value::Null) => None,
        Some(Value::Object(place)) => {
            refuse(place, &["checkpoint_ns"])?;
            text(place, "checkpoint_id")?
        }
        Some(_) => return Err(Failure::invalid("checkpoint", "must be an object")),
    };
    let named = place.or(text(body, "checkpoint_id")?);
    Ok(named.filter(|id| !id.is_empty()).map(str::to_owned))
}

/// The message of the user. The thread has the earlier ones, so there is one.
fn message(body: &Body) -> Result<String, Failure> {
    let wrong = || {
        let reason = "must be one message of the user: the thread has the earlier ones";
        Failure::invalid("input.messages", reason)
    };
    let input = body.get("input").and_then(Value::as_object);
    let input =
        input.ok_or_else(|| Failure::invalid("input", "must be an object with messages"))?;
    let one = match input.get("messages") {
        Some(Value::Array(list)) if list.len() == 1 => list.first(),
        one @ Some(Value::Object(_) | Value::String(_)) => one,
        _ => None,
    };
    content(one.and_then(said).ok_or_else(wrong)?)
}

/// What the user says in a message, in each form in which LangChain has one: with a role or a type, as a pair of role and content, as
/// a text alone, and as an object of its classes is serialised. `None`: somebody else says it.
fn said(message: &Value) -> Option<&Value> {
    let is_user = |role: &Value| matches!(role.as_str(), Some("user" | "human"));
    match message {
        Value::String(_) => Some(message),
        Value::Array(pair) => match pair.as_slice() {
            [role, text] if is_user(role) => Some(text),
            _ => None,
        },
        _ if message["type"] == "constructor" => {
            let class = message["id"].as_array().and_then(|path| path.last());
            let is_human = class.is_some_and(|class| class == "HumanMessage");
            is_human.then(|| &message["kwargs"]["content"])
        }
        _ => {
            let role = message.get("role").or_else(|| message.get("type"))?;
            is_user(role).then(|| &message["content"])
        }
    }
}

/// A text, or the texts of parts.
fn content(content: &Value) -> Result<String, Failure> {
    let wrong = || {
        Failure::invalid(
            "input.messages",
            "must have a text, or parts that are texts",
        )
    };
    match content {
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => {
            let text = |part: &Value| match part {
                Value::String(text) => Some(text.clone()),
                part if part["type"] == "text" => part["text"].as_str().map(str::to_owned),
                _ => None,
            };
            let texts: Option<Vec<String>> = parts.iter().map(text).collect();
            Ok(texts.ok_or_else(wrong)?.join("\n"))
        }
        _ => Err(wrong()),
    }
}

/// A thread that is to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewThread {
    /// Its id.
    pub(crate) id: Option<String>,
    /// The agent that answers in it.
    pub(crate) graph: Option<String>,
    /// Whether one that is there is the answer, and not a conflict.
    pub(crate) finds: bool,
}

impl NewThread {
    /// Reads it.
    ///
    /// # Errors
    /// A key cannot be what it is, or is not served.
    pub(crate) fn read(body: &Body) -> Result<Self, Failure> {
        refuse(body, &["supersteps", "ttl"])?;
        let metadata = body.get("metadata").and_then(Value::as_object);
        let graph = match metadata {
            Some(metadata) => text(metadata, "graph_id")?,
            None => None,
        };
        Ok(Self {
            id: text(body, "thread_id")?.map(str::to_owned),
            graph: graph.map(str::to_owned),
            finds: match text(body, "if_exists")? {
                None | Some("raise") => false,
                Some("do_nothing") => true,
                Some(_) => {
                    return Err(Failure::invalid("if_exists", "must be raise or do_nothing"));
                }
            },
        })
    }
}

/// Which assistants are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Search {
    graph: Option<String>,
    name: Option<String>,
    metadata: Body,
    limit: usize,
    offset: usize,
}

impl Search {
    /// Reads it.
    ///
    /// # Errors
    /// A key cannot be what it is, or is not served.
    pub(crate) fn read(body: &Body) -> Result<Self, Failure> {
        Ok(Self {
            graph: text(body, "graph_id")?.map(str::to_owned),
            name: text(body, "name")?.map(str::to_lowercase),
            metadata: match body.get("metadata") {
                None | Some(Value::Null) => Body::new(),
                Some(Value::Object(metadata)) => metadata.clone(),
                Some(_) => return Err(Failure::invalid("metadata", "must be an object")),
            },
            limit: number(body, "limit", (ASSISTANTS_USUAL, ASSISTANTS))?,
            offset: number(body, "offset", (0, u64::MAX))?,
        })
    }

    /// Those that it finds, of assistants in the order of their names.
    pub(crate) fn page(&self, all: Vec<Value>) -> Vec<Value> {
        let fits = |one: &Value| {
            let name = one["name"].as_str().unwrap_or_default();
            let mut metadata = self.metadata.iter();
            self.graph.as_deref().is_none_or(|graph| graph == name)
                && self
                    .name
                    .as_deref()
                    .is_none_or(|part| name.to_lowercase().contains(part))
                && metadata.all(|(key, value)| one["metadata"].get(key) == Some(value))
        };
        let found = all.into_iter().filter(fits);
        found.skip(self.offset).take(self.limit).collect()
    }
}

/// Which states of a thread are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct History {
    /// Most of them.
    pub(crate) limit: usize,
    /// The state before which they are.
    pub(crate) before: Option<String>,
}

impl History {
    /// Reads it.
    ///
    /// # Errors
    /// A key cannot be what it is, or is not served.
    pub(crate) fn read(body: &Body) -> Result<Self, Failure> {
        refuse(body, &["metadata", "checkpoint"])?;
        let before = match body.get("before") {
            None | Some(Value::Null) => None,
            Some(Value::String(id)) => Some(id.as_str()),
            Some(place) => {
                let of = |place: &Value| place["checkpoint_id"].as_str().map(str::to_owned);
                let id = of(place).or_else(|| of(&place["configurable"]));
                let id =
                    id.ok_or_else(|| Failure::invalid("before", "must name a checkpoint_id"))?;
                return Self::with(body, Some(id));
            }
        };
        Self::with(body, before.map(str::to_owned))
    }

    fn with(body: &Body, before: Option<String>) -> Result<Self, Failure> {
        Ok(Self {
            limit: number(body, "limit", (STATES_USUAL, STATES))?,
            before,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body(value: Value) -> Body {
        value.as_object().cloned().unwrap()
    }

    fn run(more: Value) -> Result<Run, Failure> {
        let mut run = body(json!({"assistant_id": "a",
            "input": {"messages": [{"role": "user", "content": "q"}]}}));
        run.extend(body(more));
        Run::read(&run)
    }

    #[test]
    fn a_run_is_one_message_to_an_agent() {
        let plain = run(json!({"config": {"configurable": {}}, "metadata": {"a": 1}})).unwrap();
        assert_eq!(
            (plain.assistant.as_str(), plain.message.as_str()),
            ("a", "q")
        );
        assert_eq!(plain.modes, Modes::of_values());
        assert_eq!(plain.when_busy, WhenBusy::Queue);
        let parts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
        let human = json!({"input": {"messages": {"type": "human", "content": parts}}});
        assert_eq!(run(human).unwrap().message, "a\nb");
        let modes = run(json!({"stream_mode": ["updates", "messages-tuple"]})).unwrap();
        let modes = modes.modes;
        assert_eq!(
            (modes.values, modes.updates, modes.tuples),
            (false, true, true)
        );
        let modes = run(json!({"stream_mode": "messages"})).unwrap().modes;
        assert!(modes.messages && !modes.values);
        let both = json!({"stream_mode": ["messages", "messages-tuple"]});
        assert!(!run(both).unwrap().modes.messages);
    }

    #[test]
    fn a_message_is_read_in_each_form_of_langchain() {
        let class = json!({"lc": 1, "type": "constructor", "kwargs": {"content": "q"},
            "id": ["langchain_core", "messages", "HumanMessage"]});
        for messages in [
            json!("q"),
            json!(["q"]),
            json!([["user", "q"]]),
            json!([["human", [{"type": "text", "text": "q"}]]]),
            json!([class]),
        ] {
            let read = run(json!({"input": {"messages": messages}}));
            assert_eq!(read.map(|run| run.message).unwrap(), "q", "{messages}");
        }
    }

    /// As pages send them that wait for events of tools.
    #[test]
    fn modes_without_events_are_passed_over_beside_others() {
        let many = [
            "values",
            "messages-tuple",
            "custom",
            "tools",
            "updates",
            "events",
        ];
        let modes = run(json!({"stream_mode": many})).unwrap().modes;
        assert!(modes.values && modes.updates && modes.tuples);
        assert!(run(json!({"stream_mode": ["debug", "tasks"]})).is_err());
    }

    /// What `useStream` of the SDK adds to each run, with the head of the thread that it knows.
    #[test]
    fn a_run_says_what_the_hooks_of_the_sdk_add_to_each() {
        let hook = json!({
            "stream_mode": ["values", "messages-tuple", "custom"], "stream_subgraphs": true,
            "stream_resumable": true, "on_disconnect": "cancel", "webhook": "", "after_seconds": 0,
            "checkpoint": {"checkpoint_ns": "", "checkpoint_id": "m2", "checkpoint_map": null},
            "command": null, "config": {"recursion_limit": 100}, "context": {}, "durability": "async",
        });
        let read = run(hook).unwrap();
        assert_eq!((read.head.as_deref(), read.cancels), (Some("m2"), true));
        assert!(read.modes.values && read.modes.tuples && !read.modes.updates);
        let first = run(json!({"checkpoint": {"checkpoint_id": null}})).unwrap();
        assert_eq!((first.head, first.cancels), (None, false));
    }

    #[test]
    fn what_is_not_served_is_refused_by_name() {
        let told = |more: Value| run(more).unwrap_err().message;
        for key in NOT_SERVED {
            let more = Value::Object([((*key).to_owned(), json!("x"))].into_iter().collect());
            assert_eq!(told(more), format!("{key}: is not served here"));
        }
        assert!(run(json!({"interrupt_before": [], "command": null})).is_ok());
        let two = json!([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]);
        for messages in [
            two,
            json!([]),
            json!([{"role": "ai", "content": "a"}]),
            json!([["ai", "a"]]),
            json!(["a", "b"]),
            json!([{"type": "constructor", "id": ["AIMessage"], "kwargs": {"content": "a"}}]),
            json!(7),
        ] {
            let told = told(json!({"input": {"messages": messages}}));
            assert!(told.starts_with("input.messages: "), "{told}");
        }
        assert!(told(json!({"stream_mode": "debug"})).starts_with("stream_mode: "));
        assert!(told(json!({"assistant_id": ""})).starts_with("assistant_id: "));
        assert_eq!(
            told(json!({"on_disconnect": "finish"})),
            "on_disconnect: must be continue or cancel"
        );
        let of_part = json!({"checkpoint": {"checkpoint_ns": "part:1", "checkpoint_id": "m"}});
        assert_eq!(told(of_part), "checkpoint_ns: is not served here");
        let rollback = json!({"multitask_strategy": "rollback"});
        assert!(told(rollback).starts_with("multitask_strategy: "));
    }

    #[test]
    fn assistants_are_found_by_name_in_pages() {
        let search = |value| Search::read(&body(value)).unwrap();
        let agents = ["a", "b", "ba"].map(|name| {
            let metadata = json!({"created_by": "system", "model": name});
            json!({"name": name, "metadata": metadata})
        });
        let found = |value| {
            let found = search(value).page(agents.to_vec());
            let names = found
                .iter()
                .map(|one| one["name"].as_str().unwrap().to_owned());
            names.collect::<Vec<_>>()
        };
        assert_eq!(found(json!({})), ["a", "b", "ba"]);
        assert_eq!(found(json!({"graph_id": "b"})), ["b"]);
        assert_eq!(found(json!({"name": "B"})), ["b", "ba"]);
        assert_eq!(found(json!({"limit": 1, "offset": 1})), ["b"]);
        let system = json!({"metadata": {"created_by": "system"}, "limit": 2});
        assert_eq!(found(system), ["a", "b"]);
        assert_eq!(found(json!({"metadata": {"model": "b"}})), ["b"]);
        assert!(found(json!({"metadata": {"created_by": "ann"}})).is_empty());
        assert!(Search::read(&body(json!({"limit": 1_001}))).is_err());
    }

    #[test]
    fn threads_and_histories_are_read() {
        let new =
            json!({"thread_id": "t", "if_exists": "do_nothing", "metadata": {"graph_id": "a"}});
        let new = NewThread::read(&body(new)).unwrap();
        assert_eq!(
            (new.id.as_deref(), new.graph.as_deref()),
            (Some("t"), Some("a"))
        );
        assert!(new.finds);
        let refused = NewThread::read(&body(json!({"ttl": {"ttl": 1}}))).unwrap_err();
        assert_eq!(refused.message, "ttl: is not served here");
        let history = |value| History::read(&body(value));
        assert_eq!(history(json!({})).unwrap().limit, 10);
        let before = json!({"before": {"configurable": {"checkpoint_id": "m"}}});
        assert_eq!(history(before).unwrap().before.as_deref(), Some("m"));
        assert!(history(json!({"before": {}})).is_err());
    }
}
