//! `delete-session`: deletes a session with its messages.

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::get_session::OneSession;
use super::records::Empty;
use super::surface::{AGENT, OF_USER, REQUEST_ID, SESSIONS, SINCE};
use crate::topic::Class;

/// The operation.
pub struct DeleteSession;

impl Operation for DeleteSession {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "delete-session",
        summary: "Deletes a session with its messages.",
        capability: AGENT,
        method: "DELETE",
        path: "/a1/agents/{name}/sessions/{session_id}",
        status: 204,
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
    type Reply = Empty;
    type Chunk = Empty;
    type Error = Failure;
}
