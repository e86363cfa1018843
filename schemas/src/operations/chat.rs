//! `chat`: one question to an agent, outside of any session.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::{Empty, TurnResult};
use super::surface::{AGENT, OF_TURN, REQUEST_ID, SESSIONS, SINCE};
use crate::topic::Class;

/// A question to an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Question {
    /// Name of the agent.
    pub name: String,
    /// The question: 1 to 32,000 characters.
    pub message: Option<String>,
    /// The same under another name; exactly one of both is given.
    pub prompt: Option<String>,
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
        stream: "",
        id_key: REQUEST_ID,
        headers: OF_TURN,
        query: &[],
        class: Class::Request,
        effect: Effect::Read,
        since: SINCE,
    };
    type Request = Question;
    type Reply = TurnResult;
    type Chunk = Empty;
    type Error = Failure;

    fn headers(reply: &TurnResult) -> Vec<(&'static str, String)> {
        reply.headers()
    }
}
