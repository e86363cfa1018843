//! `create-session`: begins a session of a user with an agent.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::{CompactStrategy, Empty, Session};
use super::surface::{AGENT, OF_USER, REQUEST_ID, SESSIONS, SINCE};
use crate::topic::Class;

/// What the new session is like.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct NewSession {
    /// Name of the agent.
    pub name: String,
    /// The user whose session it is.
    pub user_id: String,
    /// Its id, a UUID; left out: one that is new. The same session is the answer if it was created before.
    pub session_id: Option<String>,
    /// Its title, at most 200 characters.
    pub title: Option<String>,
    /// When it is shortened; left out: as the workspace says.
    pub compact_strategy: Option<CompactStrategy>,
    /// Messages that stay as they are when it is shortened, 0 to 200; left out: as the workspace says.
    pub compact_keep_last_n: Option<i64>,
    /// Whether a summary leaves out what tools returned; left out: as the workspace says.
    pub compact_observation_mask: Option<bool>,
    /// Whether a session of this user with this id, in which nothing was said, is given to this agent.
    pub takes_empty: bool,
}

/// The operation.
pub struct CreateSession;

impl Operation for CreateSession {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "create-session",
        summary: "Begins a session of a user with an agent.",
        capability: AGENT,
        method: "POST",
        path: "/a1/agents/{name}/sessions",
        status: 201,
        stream: "",
        id_key: REQUEST_ID,
        headers: OF_USER,
        query: &[],
        class: Class::Request,
        effect: Effect::Write,
        asks_models: false,
        since: SINCE,
    };
    type Request = NewSession;
    type Reply = Session;
    type Chunk = Empty;
    type Error = Failure;
}
