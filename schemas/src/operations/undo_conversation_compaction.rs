//! `undo-conversation-compaction`: takes the newest summary of a conversation back.

use super::conversations::{Conversation, OneConversation};
use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::surface::{AGENT, OF_WORKSPACE, SESSIONS, SINCE};
use crate::topic::Class;

/// The operation.
pub struct UndoConversationCompaction;

impl Operation for UndoConversationCompaction {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "undo-conversation-compaction",
        summary: "Takes the newest summary of a conversation back: the agent reads the messages again that it stood for. If these fill its model, the next turn makes another summary.",
        capability: AGENT,
        method: "POST",
        path: "/api/v1/workspaces/{workspace}/agents/{agent_id}/conversations/{conversation_id}/undo-compaction",
        status: 200,
        stream: "",
        id_key: OF_WORKSPACE,
        headers: &[],
        query: &[],
        class: Class::Request,
        effect: Effect::Confirm,
        asks_models: false,
        since: SINCE,
    };
    type Request = OneConversation;
    type Reply = Conversation;
    type Chunk = Empty;
    type Error = Failure;
}
