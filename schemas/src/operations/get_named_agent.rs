//! `get-named-agent`: one agent as its file describes it.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::{AgentConfig, Empty};
use super::surface::{AGENT, REQUEST_ID, SESSIONS, SINCE};
use crate::topic::Class;

/// Names an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct NamedAgent {
    /// Name of the agent.
    pub name: String,
}

/// The operation.
pub struct GetNamedAgent;

impl Operation for GetNamedAgent {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "get-named-agent",
        summary: "Shows an agent as its file describes it, with its system prompt.",
        capability: AGENT,
        method: "GET",
        path: "/a1/agents/{name}",
        status: 200,
        stream: "",
        id_key: REQUEST_ID,
        headers: &[],
        query: &[],
        class: Class::Request,
        effect: Effect::Read,
        asks_models: false,
        since: SINCE,
    };
    type Request = NamedAgent;
    type Reply = AgentConfig;
    type Chunk = Empty;
    type Error = Failure;
}
