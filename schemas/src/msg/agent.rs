//! Agent dialogs, dynamic tool services, passthrough. Field names, order and defaults are the wire contract.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::lenient::{nullable, string_map};
use super::message;
use crate::error::Error;
use crate::rdf::Triple;

/// The `PlanStep` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanStep {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `goal`.
    pub goal: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `tool_hint`.
    pub tool_hint: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `depends_on`.
    pub depends_on: Vec<i64>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `status`.
    pub status: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `result`.
    pub result: String,
}

impl Default for PlanStep {
    fn default() -> Self {
        Self {
            goal: Default::default(),
            tool_hint: Default::default(),
            depends_on: Default::default(),
            status: "pending".to_owned(),
            result: Default::default(),
        }
    }
}

message!(PlanStep);

/// The `AgentStep` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct AgentStep {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `thought`.
    pub thought: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `action`.
    pub action: String,
    #[serde(deserialize_with = "string_map")]
    /// Wire field `arguments`.
    pub arguments: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `observation`.
    pub observation: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `step_type`.
    pub step_type: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `plan`.
    pub plan: Vec<PlanStep>,
    #[serde(deserialize_with = "string_map")]
    /// Wire field `subagent_results`.
    pub subagent_results: BTreeMap<String, String>,
}

message!(AgentStep);

/// The `AgentRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `question`.
    pub question: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `state`.
    pub state: String,
    /// Wire field `group`.
    pub group: Option<Vec<String>>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `history`.
    pub history: Vec<AgentStep>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `collection`.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `streaming`.
    pub streaming: bool,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `session_id`.
    pub session_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `conversation_id`.
    pub conversation_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `pattern`.
    pub pattern: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `task_type`.
    pub task_type: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `framing`.
    pub framing: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `correlation_id`.
    pub correlation_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `parent_session_id`.
    pub parent_session_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `subagent_goal`.
    pub subagent_goal: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `expected_siblings`.
    pub expected_siblings: i64,
}

impl Default for AgentRequest {
    fn default() -> Self {
        Self {
            question: Default::default(),
            state: Default::default(),
            group: None,
            history: Default::default(),
            collection: "default".to_owned(),
            streaming: Default::default(),
            session_id: Default::default(),
            conversation_id: Default::default(),
            pattern: Default::default(),
            task_type: Default::default(),
            framing: Default::default(),
            correlation_id: Default::default(),
            parent_session_id: Default::default(),
            subagent_goal: Default::default(),
            expected_siblings: Default::default(),
        }
    }
}

message!(AgentRequest);

/// The `AgentResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct AgentResponse {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `message_type`.
    pub message_type: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `content`.
    pub content: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `end_of_message`.
    pub end_of_message: bool,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `end_of_dialog`.
    pub end_of_dialog: bool,
    /// Wire field `explain_id`.
    pub explain_id: Option<String>,
    /// Wire field `explain_graph`.
    pub explain_graph: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `explain_triples`.
    pub explain_triples: Vec<Triple>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `message_id`.
    pub message_id: String,
    /// Wire field `error`.
    pub error: Option<Error>,
    /// Wire field `in_token`.
    pub in_token: Option<i64>,
    /// Wire field `out_token`.
    pub out_token: Option<i64>,
    /// Wire field `model`.
    pub model: Option<String>,
}

message!(AgentResponse);

/// The `ToolServiceRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ToolServiceRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `config`.
    pub config: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `arguments`.
    pub arguments: String,
}

message!(ToolServiceRequest);

/// The `ToolServiceResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ToolServiceResponse {
    /// Wire field `error`.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `response`.
    pub response: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `end_of_stream`.
    pub end_of_stream: bool,
}

message!(ToolServiceResponse);

/// The `PassthroughRequest` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct PassthroughRequest {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `payload`.
    pub payload: serde_json::Map<String, serde_json::Value>,
}

message!(PassthroughRequest);

/// The `PassthroughResponse` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PassthroughResponse {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `payload`.
    pub payload: serde_json::Map<String, serde_json::Value>,
    /// Wire field `error`.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `is_final`.
    pub is_final: bool,
}

impl Default for PassthroughResponse {
    fn default() -> Self {
        Self {
            payload: Default::default(),
            error: None,
            is_final: true,
        }
    }
}

message!(PassthroughResponse);
