//! `list-sessions`: the sessions of a user with an agent.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::{Empty, Session};
use super::surface::{AGENT, OF_USER, PAGE, REQUEST_ID, SESSIONS, SINCE};
use crate::topic::Class;

/// Which sessions are listed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WhichSessions {
    /// Name of the agent.
    pub name: String,
    /// The user whose sessions they are.
    pub user_id: String,
    /// Most entries of the page: 1 to 200; left out: 50.
    pub limit: Option<i64>,
    /// The `next_cursor` of the page before; left out: the first page.
    pub cursor: Option<String>,
}

/// A page of sessions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Sessions {
    /// The sessions, newest first.
    pub sessions: Vec<Session>,
    /// The `cursor` of the next page; `null`: this is the last one.
    pub next_cursor: Option<String>,
}

/// The operation.
pub struct ListSessions;

impl Operation for ListSessions {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "list-sessions",
        summary: "Lists the sessions of a user with an agent, newest first.",
        capability: AGENT,
        method: "GET",
        path: "/a1/agents/{name}/sessions",
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
    type Request = WhichSessions;
    type Reply = Sessions;
    type Chunk = Empty;
    type Error = Failure;
}
