//! `export-session`: a session as one document.

use super::declare::{Effect, Meta, Operation};
use super::export::SessionDocument;
use super::failure::Failure;
use super::get_session::OneSession;
use super::records::Empty;
use super::surface::{AGENT, OF_USER, REQUEST_ID, SESSIONS, SINCE};
use crate::topic::Class;

/// The operation.
pub struct ExportSession;

impl Operation for ExportSession {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "export-session",
        summary: "Writes a session with its messages as one document, which another system can take in.",
        capability: AGENT,
        method: "GET",
        path: "/a1/agents/{name}/sessions/{session_id}/export",
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
    type Reply = SessionDocument;
    type Chunk = Empty;
    type Error = Failure;
}
