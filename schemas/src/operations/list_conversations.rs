//! `list-conversations`: the conversations with an agent.

use serde::{Deserialize, Serialize};

use super::conversations::{Conversation, WhichPage};
use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::surface::{AGENT, OF_WORKSPACE, PAGE, SESSIONS, SINCE};
use crate::topic::Class;

/// A page of conversations.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct Conversations {
    /// The conversations, newest first.
    pub items: Vec<Conversation>,
    /// The `cursor` of the next page; `null`: this is the last one.
    pub next_cursor: Option<String>,
}

/// The operation.
pub struct ListConversations;

impl Operation for ListConversations {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "list-conversations",
        summary: "Lists the conversations with an agent, newest first.",
        capability: AGENT,
        method: "GET",
        path: "/api/v1/workspaces/{workspace}/agents/{agent_id}/conversations",
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
    type Reply = Conversations;
    type Chunk = Empty;
    type Error = Failure;
}
