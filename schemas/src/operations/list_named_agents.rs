//! `list-named-agents`: the agents that the operator's files describe.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::{AgentSummary, Empty};
use super::surface::{AGENT, REQUEST_ID, SESSIONS, SINCE};
use crate::topic::Class;

/// The agents, in the order of their names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct NamedAgents {
    /// The agents.
    pub agents: Vec<AgentSummary>,
}

/// The operation.
pub struct ListNamedAgents;

impl Operation for ListNamedAgents {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "list-named-agents",
        summary: "Lists the agents that the operator's files describe, in the order of their names.",
        capability: AGENT,
        method: "GET",
        path: "/a1/agents",
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
    type Request = Empty;
    type Reply = NamedAgents;
    type Chunk = Empty;
    type Error = Failure;
}
