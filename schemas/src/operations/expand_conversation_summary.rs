//! `expand-conversation-summary`: the messages that a summary of a conversation stands for.

use serde::{Deserialize, Serialize};

use super::conversations::ChatMessage;
use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::list_conversation_summaries::ConversationSummary;
use super::records::Empty;
use super::surface::{AGENT, OF_WORKSPACE, SESSIONS, SINCE};
use crate::topic::Class;

/// Names a summary of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct OneConversationSummary {
    /// Id of the agent.
    pub agent_id: String,
    /// Id of the conversation.
    pub conversation_id: String,
    /// Id of the summary.
    pub summary_id: String,
}

/// A summary with what it stands for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct ExpandedConversation {
    /// The summary.
    pub summary: ConversationSummary,
    /// Its text; empty: no model wrote one, and the agent reads nothing of these messages.
    pub text: String,
    /// The messages, oldest first, without calls of tools and what these returned.
    pub messages: Vec<ChatMessage>,
}

/// The operation.
pub struct ExpandConversationSummary;

impl Operation for ExpandConversationSummary {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "expand-conversation-summary",
        summary: "Shows a summary of a conversation with the messages that it stands for.",
        capability: AGENT,
        method: "GET",
        path: "/api/v1/workspaces/{workspace}/agents/{agent_id}/conversations/{conversation_id}/summaries/{summary_id}",
        status: 200,
        stream: "",
        id_key: OF_WORKSPACE,
        headers: &[],
        query: &[],
        class: Class::Request,
        effect: Effect::Read,
        asks_models: false,
        since: SINCE,
    };
    type Request = OneConversationSummary;
    type Reply = ExpandedConversation;
    type Chunk = Empty;
    type Error = Failure;
}
