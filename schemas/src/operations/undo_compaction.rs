//! `undo-compaction`: takes a summary back.

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::get_session::OneSession;
use super::records::{Empty, Session};
use super::surface::{AGENT, OF_USER, REQUEST_ID, SESSIONS, SINCE};
use crate::topic::Class;

/// The operation.
pub struct UndoCompaction;

impl Operation for UndoCompaction {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "undo-compaction",
        summary: "Takes the shortening of a session back: the session goes on as it was, and the one that continued it is deleted. Refused once that one has a turn of its own.",
        capability: AGENT,
        method: "POST",
        path: "/a1/agents/{name}/sessions/{session_id}/undo-compaction",
        status: 200,
        stream: "",
        id_key: REQUEST_ID,
        headers: OF_USER,
        query: &[],
        class: Class::Request,
        effect: Effect::Confirm,
        asks_models: false,
        since: SINCE,
    };
    type Request = OneSession;
    type Reply = Session;
    type Chunk = Empty;
    type Error = Failure;
}
