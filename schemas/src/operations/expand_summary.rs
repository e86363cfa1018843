//! `expand-summary`: the messages that a summary stands for.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::lineage::Summary;
use super::records::{Empty, SessionMessage};
use super::surface::{AGENT, OF_USER, REQUEST_ID, SESSIONS, SINCE};
use crate::topic::Class;

/// Names a summary of the chain of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct OneSummary {
    /// Name of the agent.
    pub name: String,
    /// Id of a session of the chain.
    pub session_id: String,
    /// Id of the summary.
    pub summary_id: String,
    /// The user whose session it is.
    pub user_id: String,
}

/// A summary with what it stands for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Expanded {
    /// The summary.
    pub summary: Summary,
    /// The messages, the oldest first.
    pub messages: Vec<SessionMessage>,
}

/// The operation.
pub struct ExpandSummary;

impl Operation for ExpandSummary {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "expand-summary",
        summary: "Shows a summary with the messages that it stands for.",
        capability: AGENT,
        method: "GET",
        path: "/a1/agents/{name}/sessions/{session_id}/summaries/{summary_id}",
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
    type Request = OneSummary;
    type Reply = Expanded;
    type Chunk = Empty;
    type Error = Failure;
}
