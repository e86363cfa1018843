//! `cancel-turn`: ends the turn of a session that is in progress.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::surface::{AGENT, OF_USER, ONE_TURN, REQUEST_ID, SESSIONS, SINCE};
use crate::topic::Class;

/// Names the turn that is to end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CancelledTurn {
    /// Name of the agent; empty: whichever agent the session has.
    pub name: String,
    /// Id of the session.
    pub session_id: String,
    /// The user whose session it is.
    pub user_id: String,
    /// Id of the message of the user that the turn answers; left out: whichever turn is in progress.
    pub message_id: Option<String>,
}

/// The operation.
pub struct CancelTurn;

impl Operation for CancelTurn {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "cancel-turn",
        summary: "Ends the turn of a session that is in progress: its message stays without an answer, and the next turn begins. Changes nothing where none is.",
        capability: AGENT,
        method: "POST",
        path: "/a1/agents/{name}/sessions/{session_id}/cancel-turn",
        status: 204,
        stream: "",
        id_key: REQUEST_ID,
        headers: OF_USER,
        query: ONE_TURN,
        class: Class::Request,
        effect: Effect::Write,
        asks_models: false,
        since: SINCE,
    };
    type Request = CancelledTurn;
    type Reply = Empty;
    type Chunk = Empty;
    type Error = Failure;
}
