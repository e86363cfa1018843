//! `forget-memory`: forgets a fact about a user.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::Empty;
use super::surface::{AGENT, OF_USER, REQUEST_ID, SESSIONS, SINCE};
use crate::topic::Class;

/// Names what is remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct OneMemory {
    /// Its id.
    pub memory_id: String,
    /// The user.
    pub user_id: String,
}

/// The operation.
pub struct ForgetMemory;

impl Operation for ForgetMemory {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "forget-memory",
        summary: "Forgets a fact that agents remember of a user.",
        capability: AGENT,
        method: "DELETE",
        path: "/a1/memories/{memory_id}",
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
    type Request = OneMemory;
    type Reply = Empty;
    type Chunk = Empty;
    type Error = Failure;
}
