//! Agent dialogs, dynamic tool services, passthrough. Field names, order and defaults are the wire contract.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::lenient::{nullable, string_map};
use super::message;
use super::metadata::DEFAULT_COLLECTION;
use super::rag::Citation;
use crate::error::Error;
use crate::rdf::Triple;

/// One step of a plan. Made by foreign agents only; ours does not plan ahead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanStep {
    #[serde(deserialize_with = "nullable")]
    /// What this step of a plan is to find out.
    pub goal: String,
    #[serde(deserialize_with = "nullable")]
    /// Name of the tool that fits; empty: any.
    pub tool_hint: String,
    #[serde(deserialize_with = "nullable")]
    /// Numbers of the steps that come first, from 0.
    pub depends_on: Vec<i64>,
    #[serde(deserialize_with = "nullable")]
    /// Where the step stands: `pending` at first.
    pub status: String,
    #[serde(deserialize_with = "nullable")]
    /// What the step found out; empty until `status` is `completed`.
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

/// One earlier step of an agent's dialog, as a question may bring it along.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct AgentStep {
    #[serde(deserialize_with = "nullable")]
    /// What the model said before it decided.
    pub thought: String,
    #[serde(deserialize_with = "nullable")]
    /// Name of the tool that was chosen.
    pub action: String,
    #[serde(deserialize_with = "string_map")]
    /// What the tool was given, by argument name; what is not text is JSON text.
    pub arguments: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    /// What the tool returned.
    pub observation: String,
    #[serde(deserialize_with = "nullable")]
    /// Part that the step plays in a pattern of a foreign agent: `plan`, `execute`, `decompose`, `synthesise` or
    /// `subagent-completion`. Empty in a ReAct step; ours does not look at it.
    pub step_type: String,
    #[serde(deserialize_with = "nullable")]
    /// The plan, in a step that made one. Understood only by foreign agents.
    pub plan: Vec<PlanStep>,
    #[serde(deserialize_with = "string_map")]
    /// Answer of each subagent by its goal. Understood only by foreign agents.
    pub subagent_results: BTreeMap<String, String>,
}

message!(AgentStep);

/// A question to the agent, answered by parts of type [`AgentResponse`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentRequest {
    #[serde(deserialize_with = "nullable")]
    /// What is asked, as text.
    pub question: String,
    #[serde(deserialize_with = "nullable")]
    /// State of a tool group, which decides what tools are available; empty at the start.
    pub state: String,
    /// Groups of tools to choose from; `*` is all of them. `None`: the group `default`. An empty list: no tools.
    pub group: Option<Vec<String>>,
    #[serde(deserialize_with = "nullable")]
    /// Steps of this run so far, oldest first.
    pub history: Vec<AgentStep>,
    #[serde(deserialize_with = "nullable")]
    /// The collection that tools ask by default.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// Whether thoughts and the answer are wanted piece by piece.
    pub streaming: bool,
    #[serde(deserialize_with = "nullable")]
    /// Id of the run, which names its trace.
    pub session_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Id of the conversation that the run belongs to; empty: none.
    pub conversation_id: String,
    #[serde(deserialize_with = "nullable")]
    /// How the agent is to work. Empty or `react`: thought, tool, observation, until there is an answer.
    /// `plan-then-execute` and `supervisor` are refused by ours; what else is given counts as `react`.
    pub pattern: String,
    #[serde(deserialize_with = "nullable")]
    /// Kind of task, filled in by a foreign router. Ours does not look at it.
    pub task_type: String,
    #[serde(deserialize_with = "nullable")]
    /// Text about the domain that is put into the model's prompt; empty: none.
    pub framing: String,
    #[serde(deserialize_with = "nullable")]
    /// Ties the answers of parallel runs to what asked for them.
    pub correlation_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Id of the run that delegated this one; empty: none.
    pub parent_session_id: String,
    #[serde(deserialize_with = "nullable")]
    /// What the parent run wants to know.
    pub subagent_goal: String,
    #[serde(deserialize_with = "nullable")]
    /// How many runs the parent started side by side.
    pub expected_siblings: i64,
}

impl Default for AgentRequest {
    fn default() -> Self {
        Self {
            question: Default::default(),
            state: Default::default(),
            group: None,
            history: Default::default(),
            collection: DEFAULT_COLLECTION.to_owned(),
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

/// One part of an agent's answer. A dialog is a sequence of messages, each in one or more parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct AgentResponse {
    #[serde(deserialize_with = "nullable")]
    /// Kind of part: `thought`, `action`, `observation`, `answer`, `explain` or `error`.
    pub message_type: String,
    #[serde(deserialize_with = "nullable")]
    /// The text of this part; what was sent before is not repeated.
    pub content: String,
    #[serde(deserialize_with = "nullable")]
    /// Whether this part is the last of its message: the next one begins another thought, observation or answer.
    pub end_of_message: bool,
    #[serde(deserialize_with = "nullable")]
    /// Whether nothing follows.
    pub end_of_dialog: bool,
    /// IRI of the event in the trace that `explain_triples` describe.
    pub explain_id: Option<String>,
    /// IRI of the graph that holds the trace.
    pub explain_graph: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// The triples of the event.
    pub explain_triples: Vec<Triple>,
    #[serde(deserialize_with = "nullable")]
    /// Id of the message that this part belongs to.
    pub message_id: String,
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    /// Tokens that the model read; `None` where it did not say.
    pub in_token: Option<i64>,
    /// Tokens that the model wrote; `None` where it did not say.
    pub out_token: Option<i64>,
    /// The model that answered; `None` where it did not say.
    pub model: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// What the numbers in the answer name, in the last part. Ours, as all that follows.
    pub citations: Vec<Citation>,
    #[serde(deserialize_with = "nullable")]
    /// Whether the answer is that there is none, in the last part.
    pub refused: bool,
    #[serde(deserialize_with = "nullable")]
    /// IRI that names the run's trace, in the last part.
    pub trace: String,
}

message!(AgentResponse);

/// A call of a tool that is a service of its own (config type `tool-service`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ToolServiceRequest {
    #[serde(deserialize_with = "nullable")]
    /// Settings of the tool, as a JSON object in text.
    pub config: String,
    #[serde(deserialize_with = "nullable")]
    /// Arguments of the call, as a JSON object in text.
    pub arguments: String,
}

message!(ToolServiceRequest);

/// What such a tool returned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ToolServiceResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// The result; what is not text is JSON text. Empty with an `error`.
    pub response: String,
    #[serde(deserialize_with = "nullable")]
    /// Whether nothing follows.
    pub end_of_stream: bool,
}

message!(ToolServiceResponse);

/// A body that the gateway passes on as it is, to an interface that it has no translation for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct PassthroughRequest {
    #[serde(deserialize_with = "nullable")]
    /// The client's JSON object.
    pub payload: serde_json::Map<String, serde_json::Value>,
}

message!(PassthroughRequest);

/// What came back from such an interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PassthroughResponse {
    #[serde(deserialize_with = "nullable")]
    /// The service's JSON object, with its own names.
    pub payload: serde_json::Map<String, serde_json::Value>,
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// Whether nothing follows; true where the service does not say.
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
