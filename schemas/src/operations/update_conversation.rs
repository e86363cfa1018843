//! `update-conversation`: changes a conversation.

use serde::{Deserialize, Serialize};

use super::conversations::Conversation;
use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::surface::{AGENT, OF_WORKSPACE, SESSIONS, SINCE};
use super::workspace_agents::{present, said};
use crate::topic::Class;

/// What changes; a field that is left out stays, and `null` clears the title. Any other field is refused.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ConversationChange {
    /// Id of the agent.
    #[serde(rename = "agent_id")]
    pub agent_id: String,
    /// Id of the conversation.
    #[serde(rename = "conversation_id")]
    pub conversation_id: String,
    /// Its title.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub title: Option<Option<String>>,
    /// Collections that its answers may use.
    #[serde(
        alias = "knowledge_base_ids",
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub knowledge_base_ids: Option<Vec<String>>,
}

/// The operation.
pub struct UpdateConversation;

impl Operation for UpdateConversation {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "update-conversation",
        summary: "Changes a conversation.",
        capability: AGENT,
        method: "PATCH",
        path: "/api/v1/workspaces/{workspace}/agents/{agent_id}/conversations/{conversation_id}",
        status: 200,
        stream: "",
        id_key: OF_WORKSPACE,
        headers: &[],
        query: &[],
        class: Class::Request,
        effect: Effect::Write,
        asks_models: false,
        since: SINCE,
    };
    type Request = ConversationChange;
    type Reply = Conversation;
    type Chunk = Empty;
    type Error = Failure;
}
