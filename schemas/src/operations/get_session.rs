//! `get-session`: one session of a user.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::{Empty, Session};
use super::surface::{AGENT, OF_USER, REQUEST_ID, SESSIONS, SINCE};
use crate::topic::Class;

/// Names a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct OneSession {
    /// Name of the agent; empty: whichever agent the session has.
    pub name: String,
    /// Id of the session.
    pub session_id: String,
    /// The user whose session it is.
    pub user_id: String,
}

/// The operation.
pub struct GetSession;

impl Operation for GetSession {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "get-session",
        summary: "Shows a session.",
        capability: AGENT,
        method: "GET",
        path: "/a1/agents/{name}/sessions/{session_id}",
        status: 200,
        stream: "",
        id_key: REQUEST_ID,
        headers: OF_USER,
        query: &[],
        class: Class::Request,
        effect: Effect::Read,
        asks_models: false,
        since: SINCE,
    };
    type Request = OneSession;
    type Reply = Session;
    type Chunk = Empty;
    type Error = Failure;
}
