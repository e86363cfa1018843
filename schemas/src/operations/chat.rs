//! `chat`: one question to an agent, outside of any session.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Object, Operation, write};
use super::failure::Failure;
use super::records::{TurnEvent, TurnResult};
use super::surface::{AGENT, OF_TURN, REQUEST_ID, SESSIONS, SINCE};
use crate::topic::Class;

/// A message that came before a question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct EarlierMessage {
    /// `user`, `assistant` or `system`.
    pub role: String,
    /// The text.
    pub content: String,
}

/// A question to an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Question {
    /// Name of the agent; of an agent of the workspace its id.
    pub name: String,
    /// The question: 1 to 32,000 characters.
    pub message: Option<String>,
    /// The same under another name; exactly one of both is given.
    pub prompt: Option<String>,
    /// What was said before, oldest first; the newest 256 KiB count.
    pub earlier: Vec<EarlierMessage>,
    /// Whether the answer is wanted as events: over the socket and the bus.
    pub streaming: bool,
    /// The user who asks; empty: nobody says.
    pub user_id: String,
    /// How many agents called each other before this request.
    pub caller_depth: i64,
    /// The request that caused this one; empty: none.
    pub parent_request_id: String,
}

/// The operation.
pub struct Chat;

impl Operation for Chat {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "chat",
        summary: "Asks an agent one question. Nothing of it is kept.",
        capability: AGENT,
        method: "POST",
        path: "/a1/agents/{name}/chat",
        status: 200,
        stream: "/a1/agents/{name}/chat/stream",
        id_key: REQUEST_ID,
        headers: OF_TURN,
        query: &[],
        class: Class::Request,
        effect: Effect::Read,
        asks_models: true,
        since: SINCE,
    };
    type Request = Question;
    type Reply = TurnResult;
    type Chunk = TurnEvent;
    type Error = Failure;

    fn headers(reply: &TurnResult) -> Vec<(&'static str, String)> {
        reply.headers()
    }

    fn end(request: &Question, reply: &TurnResult) -> Option<(&'static str, Object)> {
        let event = match reply.finish_reason.as_str() {
            "error" => "error",
            _ => "done",
        };
        let data = write(reply).ok().filter(|_| request.streaming)?;
        Some((event, data))
    }
}
