//! Tasks: work that a run gave to another agent and does not wait for; and what a session is sent about it.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;

/// A task, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct AgentTask {
    /// Its id: 24 hexadecimal digits.
    #[serde(deserialize_with = "nullable")]
    pub id: String,
    /// `delegate`, or `dispatch`: a graph of tasks.
    #[serde(deserialize_with = "nullable")]
    pub kind: String,
    /// Id of the agent that does it; of a graph of tasks, name of the tool.
    #[serde(deserialize_with = "nullable")]
    pub agent: String,
    /// Session in which that agent does it.
    #[serde(deserialize_with = "nullable")]
    pub session: String,
    /// Id of its run; empty: it has not begun.
    #[serde(deserialize_with = "nullable")]
    pub run: String,
    /// Its workspace.
    #[serde(deserialize_with = "nullable")]
    pub workspace: String,
    /// Whose run gave it.
    #[serde(deserialize_with = "nullable")]
    pub user: String,
    /// The begin of the agent's message.
    #[serde(deserialize_with = "nullable")]
    pub message: String,
    /// `pending`, `running`, `success`, `failed` or `cancelled`.
    #[serde(deserialize_with = "nullable")]
    pub status: String,
    /// The begin of what came of it.
    #[serde(deserialize_with = "nullable")]
    pub result: String,
    /// What went wrong.
    #[serde(deserialize_with = "nullable")]
    pub error: String,
    /// When it was given, milliseconds since the Unix epoch.
    #[serde(deserialize_with = "nullable")]
    pub created_ms: i64,
    /// When it began; 0: it has not.
    #[serde(deserialize_with = "nullable")]
    pub started_ms: i64,
    /// When it was over; 0: it is not.
    #[serde(deserialize_with = "nullable")]
    pub completed_ms: i64,
}

message!(AgentTask);

/// What a session is told that nobody asked for just now, on `notify:tg:session:{workspace}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct SessionNotice {
    /// The session.
    #[serde(deserialize_with = "nullable")]
    pub session_id: String,
    /// Id of the message.
    #[serde(deserialize_with = "nullable")]
    pub message_id: String,
    /// Its text.
    #[serde(deserialize_with = "nullable")]
    pub text: String,
    /// `announce`: what came of a task; `progress`: how far a graph of tasks is.
    #[serde(deserialize_with = "nullable")]
    pub kind: String,
    /// What the agent of the session is sent, so that it says this in its own words in the place of `text`; empty: nothing.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub notification: String,
}

message!(SessionNotice);
