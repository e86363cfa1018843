//! `list-conversation-messages`: what was said in a conversation.

use serde::{Deserialize, Serialize};

use super::conversations::{ChatMessage, WhichPage};
use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::surface::{AGENT, OF_WORKSPACE, PAGE, SESSIONS, SINCE};
use crate::topic::Class;

/// A page of messages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct ChatMessages {
    /// The messages, oldest first.
    pub items: Vec<ChatMessage>,
    /// The `cursor` of the next page; `null`: this is the last one.
    pub next_cursor: Option<String>,
}

/// The operation.
pub struct ListConversationMessages;

impl Operation for ListConversationMessages {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "list-conversation-messages",
        summary: "Lists what was said in a conversation, oldest first.",
        capability: AGENT,
        method: "GET",
        path: "/api/v1/workspaces/{workspace}/agents/{agent_id}/conversations/{conversation_id}/messages",
        status: 200,
        stream: "",
        id_key: OF_WORKSPACE,
        headers: &[],
        query: PAGE,
        class: Class::Request,
        effect: Effect::Read,
        asks_models: false,
        since: SINCE,
    };
    type Request = WhichPage;
    type Reply = ChatMessages;
    type Chunk = Empty;
    type Error = Failure;
}
