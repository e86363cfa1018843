//! `cancel-turn`: ends the turn of a session that is in progress.

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::get_session::OneSession;
use super::records::Empty;
use super::surface::{AGENT, OF_USER, REQUEST_ID, SESSIONS, SINCE};
use crate::topic::Class;

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
        query: &[],
        class: Class::Request,
        effect: Effect::Write,
        since: SINCE,
    };
    type Request = OneSession;
    type Reply = Empty;
    type Chunk = Empty;
    type Error = Failure;
}
