//! Conversations with agents of workspaces, as the operations on them answer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct Conversation {
    /// Its workspace.
    pub workspace_id: String,
    /// The agent that answers in it.
    pub agent_id: String,
    /// Its id.
    pub conversation_id: String,
    /// Its title.
    pub title: Option<String>,
    /// Collections that its answers may use; none: those of the agent.
    pub knowledge_base_ids: Vec<String>,
    /// When it was created.
    pub created_at: String,
}

/// A message of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct ChatMessage {
    /// Its workspace.
    pub workspace_id: String,
    /// Its conversation.
    pub conversation_id: String,
    /// Its id.
    pub message_id: String,
    /// When it was written.
    pub message_ts: String,
    /// `user`, `agent`, `system` or `tool`.
    pub role: String,
    /// The text.
    pub content: Option<String>,
    /// Tokens of it; `null`: nobody counted.
    pub token_count: Option<i64>,
    /// What is known of an answer: `model`, `finish_reason`, `usage`, `cost`.
    pub metadata: BTreeMap<String, String>,
}

/// Names a conversation of an agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct OneConversation {
    /// Id of the agent.
    pub agent_id: String,
    /// Id of the conversation.
    pub conversation_id: String,
}

/// Which page of something that belongs to an agent, or to a conversation of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WhichPage {
    /// Id of the agent.
    pub agent_id: String,
    /// Id of the conversation, where messages are listed.
    pub conversation_id: String,
    /// Most entries of the page: 1 to 200; left out: 50.
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before; left out: the first page.
    pub cursor: Option<String>,
}
