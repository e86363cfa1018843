//! `send-conversation-message`: one turn of a conversation.

use serde::{Deserialize, Serialize};

use super::conversations::ChatMessage;
use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::surface::{AGENT, OF_WORKSPACE, SESSIONS, SINCE};
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
        id_key: OF_WORKSPACE,
        headers: &[],
        query: &[],
        class: Class::Request,
        effect: Effect::Write,
        since: SINCE,
    };
    type Request = SentContent;
    type Reply = Exchange;
    type Chunk = Empty;
    type Error = Failure;
}
