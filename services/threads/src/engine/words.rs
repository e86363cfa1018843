//! Messages of the pump in the words of the bus, and back.

use serde_json::{Value, json};
use tg_clients::agent_runs::confirm_command;
use tg_schemas::msg::{
    AgentRequest, AgentResponse, ListenerInfo, ListenerRequest, ListenerResponse, ThreadMessage,
};
use tg_schemas::paging::{Asked, Page};
use tg_schemas::{Error, ErrorCode};
use tg_threads::{ATTEMPT, Delivery, Directory, Envelope, FORWARDS, Name, Outcome, Turn};

use super::rows::Listeners;

/// Type of the message in which the flow's agent asks the outside caller before it uses a tool.
pub const CONFIRM: &str = "confirm";

/// The request to a listener. A listener that is an agent also gets the usage of its peers.
pub fn request(delivery: &Delivery, usage: Option<String>) -> ListenerRequest {
    let (envelope, metadata) = (delivery.envelope(), delivery.metadata());
    ListenerRequest {
        thread_id: metadata.thread_id.to_string(),
        since_ms: i64::try_from(metadata.since).unwrap_or(i64::MAX),
        from_id: metadata.from_id.to_string(),
        own_name: metadata.own_name.as_ref().map(ToString::to_string),
        is_self_call: metadata.is_self_call,
        usage_instructions: usage,
        r#type: envelope.kind.to_string(),
        payload: envelope.payload.clone(),
    }
}

/// The question to the flow's agent. The trace of its run has the ids of the threads. The agent uses the tools in `grant` without
/// asking the outside caller first.
pub fn question(delivery: &Delivery, grant: &[String]) -> AgentRequest {
    let content = delivery.envelope().content();
    let parent = delivery.parent_thread();
    let mut request = AgentRequest {
        question: content.text("question").to_owned(),
        streaming: true,
        thread: delivery.metadata().thread_id.to_string(),
        parent_thread: parent.as_ref().map(ToString::to_string).unwrap_or_default(),
        grant: grant.to_vec(),
        ..AgentRequest::default()
    };
    let named = content.text("collection");
    if !named.is_empty() {
        named.clone_into(&mut request.collection);
    }
    request
}

/// The message that asks the outside caller whether the agent may use a tool, on the thread that the caller knows. The run goes on
/// when the caller answers by the operation `confirm-run`.
pub fn asks(thread: &str, run: &str, part: &AgentResponse) -> ThreadMessage {
    let asked: Value = serde_json::from_slice(part.content.as_bytes()).unwrap_or_default();
    let (tool, arguments) = (&asked["tool"], &asked["arguments"]);
    let named = tool.as_str().unwrap_or_default();
    let whole = arguments.to_string();
    let shown = if whole.len() <= ATTEMPT {
        whole
    } else {
        format!("what `tg attach {run}` shows")
    };
    let command = confirm_command(run, &part.message_id);
    let text = format!(
        "May the agent use the tool {named}, with {shown}? Answer elsewhere, with yes or no: {command}"
    );
    let payload = [
        ("message", Value::from(text)),
        ("run", Value::from(run)),
        ("message_id", Value::from(part.message_id.as_str())),
        ("tool", tool.clone()),
        ("arguments", arguments.clone()),
        ("until_ms", asked["until-ms"].clone()),
    ];
    let payload = payload.map(|(key, value)| (key.to_owned(), value));
    ThreadMessage {
        thread: thread.to_owned(),
        from: Name::system().to_string(),
        r#type: CONFIRM.to_owned(),
        payload: payload.into_iter().collect(),
    }
}

/// The answer of the flow's agent.
pub fn answered(text: &str) -> Outcome {
    Outcome::Turn(Turn::respond("agentresponse", json!({"answer": text})))
}

/// The outcome of a listener that returned.
pub fn outcome(returned: ListenerResponse) -> Outcome {
    if let Some(error) = returned.error {
        return Outcome::Failed(error.message);
    }
    if returned.forwards.len() > FORWARDS {
        return Outcome::Unreadable(Vec::new());
    }
    let mut turn = Turn::none();
    for one in returned.forwards {
        turn = turn.and_forward(&one.to, &one.r#type, Value::Object(one.payload));
    }
    if let Some(one) = returned.respond {
        turn = turn.and_respond(&one.r#type, Value::Object(one.payload));
    }
    Outcome::Turn(turn)
}

/// The outcome of a listener that did not return.
pub fn broken(error: &Error) -> Outcome {
    match error.code() {
        ErrorCode::Timeout => Outcome::TimedOut,
        ErrorCode::Cancelled => Outcome::Cancelled,
        ErrorCode::NobodyServes | ErrorCode::Unavailable | ErrorCode::FlowStopped => {
            Outcome::Unserved
        }
        // The listener replied, and the reply cannot be read.
        ErrorCode::Internal => Outcome::Unreadable(Vec::new()),
        _ => Outcome::Failed(error.message.clone()),
    }
}

/// A message for the outside caller.
pub fn message(envelope: Envelope) -> ThreadMessage {
    ThreadMessage {
        thread: envelope.thread.to_string(),
        from: envelope.from.to_string(),
        r#type: envelope.kind.to_string(),
        payload: envelope.payload,
    }
}

/// The listeners that somebody may send to.
///
/// # Errors
/// As [`Page::of`].
pub fn listed(directory: &Directory, asked: Asked) -> Result<Page<ListenerInfo>, Error> {
    let shown = directory
        .all()
        .filter(|one| !one.name().as_str().starts_with("system."));
    Page::of(
        asked,
        shown,
        |one| one.name().as_str(),
        |one| ListenerInfo {
            name: one.name().to_string(),
            description: one.description().to_owned(),
            types: one.types().keys().map(ToString::to_string).collect(),
            agent: one.is_agent(),
            ..ListenerInfo::default()
        },
    )
}

/// The rows of listeners that are left out.
///
/// # Errors
/// As [`Page::of`].
pub fn refused(listeners: &Listeners, asked: Asked) -> Result<Page<ListenerInfo>, Error> {
    Page::of(
        asked,
        &listeners.refused,
        |one| one.0.as_str(),
        |(name, why)| ListenerInfo {
            name: name.clone(),
            why: why.to_string(),
            ..ListenerInfo::default()
        },
    )
}
