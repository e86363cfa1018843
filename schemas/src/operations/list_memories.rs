//! `list-memories`: what is remembered of a user across sessions.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::surface::{AGENT, OF_USER, PAGE, REQUEST_ID, SESSIONS, SINCE};
use crate::topic::Class;

/// Which page of what is remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WhichMemories {
    /// The user.
    pub user_id: String,
    /// Most entries of the page: 1 to 200; left out: 50.
    pub limit: Option<i64>,
    /// The `next_cursor` of the page before; left out: the first page.
    pub cursor: Option<String>,
}

/// A fact that a user stated, as a triple with its source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Memory {
    /// Its id.
    pub id: String,
    /// Whom or what it is about.
    pub subject: String,
    /// What is said of that.
    pub predicate: String,
    /// The value.
    pub object: String,
    /// The agent to which the user said it.
    pub agent: String,
    /// The session in which the user said it.
    pub session_id: String,
    /// The message that says it.
    pub message_id: String,
    /// When.
    pub created_at: String,
}

/// A page of what is remembered, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Memories {
    /// The facts.
    pub memories: Vec<Memory>,
    /// Where the next page begins; `null`: this is the last one.
    pub next_cursor: Option<String>,
}

/// The operation.
pub struct ListMemories;

impl Operation for ListMemories {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "list-memories",
        summary: "Lists what agents remember of a user across sessions.",
        capability: AGENT,
        method: "GET",
        path: "/a1/memories",
        status: 200,
        stream: "",
        id_key: REQUEST_ID,
        headers: OF_USER,
        query: PAGE,
        class: Class::Request,
        effect: Effect::Read,
        asks_models: false,
        since: SINCE,
    };
    type Request = WhichMemories;
    type Reply = Memories;
    type Chunk = Empty;
    type Error = Failure;
}
