//! `get-conversation`: one conversation.

use super::conversations::{Conversation, OneConversation};
use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::surface::{AGENT, OF_WORKSPACE, SESSIONS, SINCE};
use crate::topic::Class;

/// The operation.
pub struct GetConversation;

impl Operation for GetConversation {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "get-conversation",
        summary: "Shows a conversation.",
        capability: AGENT,
        method: "GET",
        path: "/api/v1/workspaces/{workspace}/agents/{agent_id}/conversations/{conversation_id}",
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
    type Request = OneConversation;
    type Reply = Conversation;
    type Chunk = Empty;
    type Error = Failure;
}
