//! `delete-conversation`: deletes a conversation with its messages.

use super::conversations::OneConversation;
use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::surface::{AGENT, OF_WORKSPACE, SESSIONS, SINCE};
use crate::topic::Class;

/// The operation.
pub struct DeleteConversation;

impl Operation for DeleteConversation {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "delete-conversation",
        summary: "Deletes a conversation with its messages.",
        capability: AGENT,
        method: "DELETE",
        path: "/api/v1/workspaces/{workspace}/agents/{agent_id}/conversations/{conversation_id}",
        status: 204,
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
    type Reply = Empty;
    type Chunk = Empty;
    type Error = Failure;
}
