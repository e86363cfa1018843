//! `send-conversation-message`: one turn of a conversation.

use serde::{Deserialize, Serialize};

use super::conversations::ChatMessage;
use super::declare::{Effect, Meta, Object, Operation, write};
use super::failure::Failure;
use super::records::TurnEvent;
use super::surface::{AGENT, OF_NOBODY, OF_WORKSPACE, SESSIONS, SINCE};
use crate::topic::Class;

/// A message to an agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SentContent {
    /// Id of the agent.
    pub agent_id: String,
    /// Id of the conversation.
    pub conversation_id: String,
    /// The text: 1 to 32,000 characters.
    pub content: String,
    /// Whether the answer is wanted as events: over the socket and the bus.
    pub streaming: bool,
    /// How many agents called each other before this request.
    pub caller_depth: i64,
    /// The request that caused this one; empty: none.
    pub parent_request_id: String,
}

/// What was said in a turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Exchange {
    /// The user's message.
    pub user: ChatMessage,
    /// The agent's answer.
    pub assistant: ChatMessage,
}

/// The operation.
pub struct SendConversationMessage;

impl Operation for SendConversationMessage {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "send-conversation-message",
        summary: "Sends a message in a conversation and waits for the answer.",
        capability: AGENT,
        method: "POST",
        path: "/api/v1/workspaces/{workspace}/agents/{agent_id}/conversations/{conversation_id}/messages",
        status: 201,
        stream: "/api/v1/workspaces/{workspace}/agents/{agent_id}/conversations/{conversation_id}/messages/stream",
        id_key: OF_WORKSPACE,
        headers: OF_NOBODY,
        query: &[],
        class: Class::Request,
        effect: Effect::Write,
        asks_models: true,
        since: SINCE,
    };
    type Request = SentContent;
    type Reply = Exchange;
    type Chunk = TurnEvent;
    type Error = Failure;

    fn end(request: &SentContent, reply: &Exchange) -> Option<(&'static str, Object)> {
        let reason = reply.assistant.metadata.get("finish_reason");
        let event = match reason.map(String::as_str) {
            Some("error") => "error",
            _ => "done",
        };
        let data = write(&reply.assistant).ok().filter(|_| request.streaming)?;
        Some((event, data))
    }
}
