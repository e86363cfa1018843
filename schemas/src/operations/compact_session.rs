//! `compact-session`: sums a session up and goes on in a new one.

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::get_session::OneSession;
use super::lineage::CompactResult;
use super::records::Empty;
use super::surface::{AGENT, OF_USER, REQUEST_ID, SESSIONS, SINCE};
use crate::topic::Class;

/// The operation.
pub struct CompactSession;

impl Operation for CompactSession {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "compact-session",
        summary: "Sums a session up. Another session continues it, with the summary and the last messages.",
        capability: AGENT,
        method: "POST",
        path: "/a1/agents/{name}/sessions/{session_id}/compact",
        status: 200,
        stream: "",
        id_key: REQUEST_ID,
        headers: OF_USER,
        query: &[],
        class: Class::Request,
        effect: Effect::Write,
        asks_models: true,
        since: SINCE,
    };
    type Request = OneSession;
    type Reply = CompactResult;
    type Chunk = Empty;
    type Error = Failure;

    fn headers(reply: &CompactResult) -> Vec<(&'static str, String)> {
        reply.cost.headers()
    }
}
