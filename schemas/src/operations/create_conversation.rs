//! `create-conversation`: begins a conversation with an agent.

use serde::{Deserialize, Serialize};

use super::conversations::Conversation;
use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::surface::{AGENT, OF_WORKSPACE, SESSIONS, SINCE};
use crate::topic::Class;

/// What the new conversation is like.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct NewConversation {
    /// Id of the agent.
    #[serde(rename = "agent_id")]
    pub agent_id: String,
    /// Its id, a UUID; left out: a new one.
    #[serde(alias = "conversation_id")]
    pub conversation_id: Option<String>,
    /// Its title, at least one character.
    pub title: Option<String>,
    /// Collections that its answers may use; none: those of the agent.
    #[serde(alias = "knowledge_base_ids")]
    pub knowledge_base_ids: Vec<String>,
}

/// The operation.
pub struct CreateConversation;

impl Operation for CreateConversation {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "create-conversation",
        summary: "Begins a conversation with an agent.",
        capability: AGENT,
        method: "POST",
        path: "/api/v1/workspaces/{workspace}/agents/{agent_id}/conversations",
        status: 201,
        stream: "",
        id_key: OF_WORKSPACE,
        headers: &[],
        query: &[],
        class: Class::Request,
        effect: Effect::Write,
        asks_models: false,
        since: SINCE,
    };
    type Request = NewConversation;
    type Reply = Conversation;
    type Chunk = Empty;
    type Error = Failure;
}
