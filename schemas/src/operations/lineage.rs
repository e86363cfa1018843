//! Sessions that were shortened, as the operations on them answer: summaries, and the chain of sessions that continue each other.

use serde::{Deserialize, Serialize};

use super::records::Cost;

/// A summary that stands for messages of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Summary {
    /// Its id.
    pub id: String,
    /// The session whose messages it sums up.
    pub source_session_id: String,
    /// The session that begins with it; `null`: it was deleted.
    pub successor_session_id: Option<String>,
    /// The text.
    pub text: String,
    /// The model that wrote it; empty: it did not say.
    pub model: String,
    /// Messages that it stands for.
    pub message_count: i64,
    /// Whether what tools returned was left out of it.
    pub observation_mask: bool,
    /// Tokens of the session before, about.
    pub tokens_before: i64,
    /// Tokens of what continues it, about.
    pub tokens_after: i64,
    /// When it was written.
    pub created_at: String,
    /// `full` or `partial`: whether the longest messages were left out of it.
    pub tier: String,
    /// `manual` or `auto`: what caused it.
    pub trigger: String,
    /// The prompt that it was asked for with, by its version.
    pub prompt: String,
    /// Numbers of the first and the last message that it stands for.
    pub messages: Vec<i64>,
}

/// What became of a session that was shortened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CompactResult {
    /// The session that was shortened; it is archived.
    pub source_session_id: String,
    /// The session that continues it.
    pub successor_session_id: String,
    /// Id of the summary.
    pub summary_id: String,
    /// Its text.
    pub summary_text: String,
    /// The model that wrote it; empty: it did not say.
    pub summary_model: String,
    /// Messages that it stands for.
    pub compacted_count: i64,
    /// Messages that stayed as they are.
    pub kept_count: i64,
    /// Tokens of the session before, about.
    pub tokens_before: i64,
    /// Tokens of the session that continues it, about.
    pub tokens_after: i64,
    /// What it cost; of no call where an earlier attempt at the request made the summary.
    pub cost: Cost,
}

/// A session of a chain.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LineageNode {
    /// Its id.
    pub id: String,
    /// When it was created.
    pub created_at: String,
    /// When it was archived; `null`: it was not.
    pub archived_at: Option<String>,
    /// Messages in it.
    pub message_count: i64,
}

/// The chain that a session belongs to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Lineage {
    /// The session.
    pub session_id: String,
    /// The session of the chain that goes on; `null`: it was deleted.
    pub live_session_id: Option<String>,
    /// Those that it continues, the nearest first.
    pub backward: Vec<LineageNode>,
    /// Those that continue it, the nearest first.
    pub forward: Vec<LineageNode>,
    /// The summaries of the whole chain, the oldest first.
    pub summaries: Vec<Summary>,
}
