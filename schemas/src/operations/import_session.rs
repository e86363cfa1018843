//! `import-session`: takes a session in that was written as a document.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Operation};
use super::export::SessionDocument;
use super::failure::Failure;
use super::records::{Empty, Session};
use super::surface::{AGENT, OF_USER, REQUEST_ID, SESSIONS, SINCE};
use crate::topic::Class;

/// A document for an agent and a user, whoever it was written for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ImportedSession {
    /// Name of the agent.
    pub name: String,
    /// The user whose session it becomes.
    pub user_id: String,
    /// The document.
    pub document: SessionDocument,
}

/// The operation.
pub struct ImportSession;

impl Operation for ImportSession {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "import-session",
        summary: "Takes a session in that was written as a document. It gets a new id.",
        capability: AGENT,
        method: "POST",
        path: "/a1/agents/{name}/import-session",
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
    type Request = ImportedSession;
    type Reply = Session;
    type Chunk = Empty;
    type Error = Failure;
}
