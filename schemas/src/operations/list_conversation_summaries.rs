//! `list-conversation-summaries`: the summaries that agents read instead of messages of a conversation.

use serde::{Deserialize, Serialize};

use super::conversations::WhichPage;
use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::surface::{AGENT, OF_WORKSPACE, PAGE, SESSIONS, SINCE};
use crate::topic::Class;

/// A summary of a conversation, and where it comes from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct ConversationSummary {
    /// Its conversation.
    pub conversation_id: String,
    /// Its id.
    pub summary_id: String,
    /// The model that wrote it; empty: it did not say.
    pub model: String,
    /// The prompt that it was asked for with, by its version.
    pub prompt: String,
    /// `full`, `partial`, `note` or `hard_clear`: how much of what it stands for is in it.
    pub tier: String,
    /// Messages that it stands for, beside those of the summary before it.
    pub message_count: i64,
    /// Numbers of the first and the last of them.
    pub messages: Vec<i64>,
    /// When it was written.
    pub created_at: String,
}

/// A page of summaries.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct ConversationSummaries {
    /// The summaries, oldest first. The agent reads the last one.
    pub items: Vec<ConversationSummary>,
    /// The `cursor` of the next page; `null`: this is the last one.
    pub next_cursor: Option<String>,
}

/// The operation.
pub struct ListConversationSummaries;

impl Operation for ListConversationSummaries {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "list-conversation-summaries",
        summary: "Lists the summaries that an agent reads instead of messages of a conversation, oldest first.",
        capability: AGENT,
        method: "GET",
        path: "/api/v1/workspaces/{workspace}/agents/{agent_id}/conversations/{conversation_id}/summaries",
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
    type Reply = ConversationSummaries;
    type Chunk = Empty;
    type Error = Failure;
}
