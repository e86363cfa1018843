//! `send-message`: one turn of a session.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Object, Operation, write};
use super::failure::Failure;
use super::records::{TurnEvent, TurnResult};
use super::surface::{AGENT, OF_TURN, REQUEST_ID, SESSIONS, SINCE};
use crate::topic::Class;

/// What happens to a turn while another turn of its session is in progress.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WhenBusy {
    /// It waits for the other one.
    #[default]
    Queue,
    /// It is refused.
    Refuse,
    /// It ends the other one, which is answered `turn_interrupted`, and takes its place.
    Interrupt,
}

/// A message to an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SentMessage {
    /// Name of the agent.
    pub name: String,
    /// Id of the session.
    pub session_id: String,
    /// The user whose session it is.
    pub user_id: String,
    /// The text: 1 to 32,000 characters.
    pub message: String,
    /// What happens while another turn of the session is in progress.
    pub when_busy: WhenBusy,
    /// Id of the message that must be the newest one of the session's user; left out: whichever it is.
    pub follows: Option<String>,
    /// Whether the session is deleted if the message is refused and nothing was said in it.
    pub starts: bool,
    /// Whether the message is refused unless the same request sent it before.
    pub repeats: bool,
    /// Whether the answer is wanted as events: over the socket and the bus.
    pub streaming: bool,
    /// How many agents called each other before this request.
    pub caller_depth: i64,
    /// The request that caused this one; empty: none.
    pub parent_request_id: String,
}

/// The operation.
pub struct SendMessage;

impl Operation for SendMessage {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "send-message",
        summary: "Sends a message in a session and waits for the agent's answer.",
        capability: AGENT,
        method: "POST",
        path: "/a1/agents/{name}/sessions/{session_id}/messages",
        status: 200,
        stream: "/a1/agents/{name}/sessions/{session_id}/messages/stream",
        id_key: REQUEST_ID,
        headers: OF_TURN,
        query: &[],
        class: Class::Request,
        effect: Effect::Write,
        asks_models: true,
        since: SINCE,
    };
    type Request = SentMessage;
    type Reply = TurnResult;
    type Chunk = TurnEvent;
    type Error = Failure;

    fn headers(reply: &TurnResult) -> Vec<(&'static str, String)> {
        reply.headers()
    }

    fn end(request: &SentMessage, reply: &TurnResult) -> Option<(&'static str, Object)> {
        let event = match reply.finish_reason.as_str() {
            "error" => "error",
            _ => "done",
        };
        let data = write(reply).ok().filter(|_| request.streaming)?;
        Some((event, data))
    }
}
