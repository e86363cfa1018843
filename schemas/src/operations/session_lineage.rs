//! `session-lineage`: the chain that a session belongs to.

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::get_session::OneSession;
use super::lineage::Lineage;
use super::records::Empty;
use super::surface::{AGENT, OF_USER, REQUEST_ID, SESSIONS, SINCE};
use crate::topic::Class;

/// The operation.
pub struct SessionLineage;

impl Operation for SessionLineage {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "session-lineage",
        summary: "Shows the sessions that a session continues, those that continue it, and their summaries.",
        capability: AGENT,
        method: "GET",
        path: "/a1/agents/{name}/sessions/{session_id}/lineage",
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
    type Reply = Lineage;
    type Chunk = Empty;
    type Error = Failure;
}
