//! Agent dialogs, dynamic tool services, passthrough. Field names, order and defaults are the wire contract.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::chat::ChatUsage;
use super::lenient::{is_zero, nullable, string_map};
use super::llm::{ModelService, ModelSettings};
use super::message;
use super::metadata::DEFAULT_COLLECTION;
use super::rag::Citation;
use crate::error::Error;
use crate::rdf::Triple;

/// One step of a plan.
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
    /// State of the step: `pending` at first, then `completed`. Ours also uses `failed` and `skipped`.
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
    /// What the model wrote before it decided.
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
    /// How the agent is to work. `react`: thought, tool, observation, until there is an answer. Empty: as its router chooses
    /// by the workspace's configuration, else `react`. `plan-then-execute`: a plan first, then its steps one by one, and an
    /// answer from what they found. `supervisor`: parts of the question for subagents side by side, and an answer from what they
    /// found. Any other value is refused.
    pub pattern: String,
    #[serde(deserialize_with = "nullable")]
    /// Kind of task. One that the workspace has configured is taken as given; else the router finds it.
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
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    /// The last calls of the session that the question belongs to, as its last answer listed them. Ours.
    pub loop_window: Vec<LoopRecord>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    /// Seconds that the run continues when its asker has left and nobody joins it; 0: as the question asks. Ours.
    pub grace: i64,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    /// Names of tools that write, or ask first, and may be used in this run without being asked. Ours.
    pub grant: Vec<String>,
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "std::ops::Not::not"
    )]
    /// Whether what the run hears of models and tools is kept, so that it can be replayed. Ours.
    pub record: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// Names of the tools that the run may use, of those that its groups have. `None`: all of these. Ours.
    pub tool_names: Option<Vec<String>>,
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    /// The model that answers; empty: that of the flow. Ours, as what follows.
    pub model: String,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    /// Models to be asked in this order where the first cannot answer.
    pub models: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// Most tokens of a reply of the model; `None`: as many as it writes.
    pub max_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// Sampling temperature; `None`: that of the flow.
    pub temperature: Option<f64>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    /// Most rounds of model and tools, at most 50. A run that needs more is stopped with what it has. 0: the service's setting.
    pub max_iterations: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// The LLM service of the workspace that answers; `None`: the provider of the flow.
    pub service: Option<ModelService>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    /// Passages that a search of a tool returns if the model names no number, at most 50; 0: the tool's own number.
    pub top_k: i64,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    /// How many agents called each other before what a tool of the run asks, counted at the doors; 0: nobody counts.
    pub caller_depth: i64,
    /// Name of the agent that the run's usage counts for; empty: none. Ours.
    pub agent: String,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    /// Collections that tools over collections look into, at most 100; empty: `collection`. Ours.
    pub collections: Vec<String>,
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    /// Bounds of loops, in the form of the workspace's row `loop_detection`; empty: that row. Ours.
    pub loop_detection: String,
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    /// The thread of listeners on which it is asked, for the trace of the run; empty: none. Ours, as what follows.
    pub thread: String,
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    /// The thread of the listener that asks it; empty: none.
    pub parent_thread: String,
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
            loop_window: Default::default(),
            grace: 0,
            grant: Vec::new(),
            record: false,
            tool_names: None,
            model: String::new(),
            models: Vec::new(),
            max_tokens: None,
            temperature: None,
            max_iterations: 0,
            service: None,
            top_k: 0,
            caller_depth: 0,
            agent: String::new(),
            collections: Vec::new(),
            loop_detection: String::new(),
            thread: String::new(),
            parent_thread: String::new(),
        }
    }
}

impl AgentRequest {
    /// Its settings of the model; `None`: none.
    pub fn settings(&self) -> Option<ModelSettings> {
        let settings = ModelSettings {
            model: self.model.clone(),
            models: self.models.clone(),
            max_tokens: self.max_tokens,
            temperature: self.temperature,
            service: self.service.clone(),
        };
        settings.said()
    }
}

message!(AgentRequest);

/// One part of an agent's answer. A dialog is a sequence of messages, each in one or more parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct AgentResponse {
    #[serde(deserialize_with = "nullable")]
    /// Kind of part: `thought`, `action`, `observation`, `answer`, `explain` or `error`; of ours `confirm`, too: the user is asked
    /// whether a tool may be used.
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
    /// Input tokens; `None`: not reported.
    pub in_token: Option<i64>,
    /// Output tokens; `None`: not reported.
    pub out_token: Option<i64>,
    /// The model that answered; `None`: not reported.
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
    #[serde(deserialize_with = "nullable")]
    /// Why the run ended, in the last part: `stop` with an answer, `error` without one, or why it was stopped: `loop`, `budget` or
    /// `max_iterations`.
    pub finish_reason: String,
    #[serde(deserialize_with = "nullable")]
    /// Whether the run was stopped: the answer is the best that there was.
    pub stopped: bool,
    #[serde(deserialize_with = "nullable")]
    /// The last calls of the session, in the last part: for its next question.
    pub loop_window: Vec<LoopRecord>,
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    /// Names the call of a tool that an `action` or `observation` is of: what was observed has that of its action.
    pub call_id: String,
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    /// The tool that is called, in an `action` or `observation`.
    pub tool_name: String,
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "serde_json::Map::is_empty"
    )]
    /// What it is given, in an `action`.
    pub args: serde_json::Map<String, serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// In the last part: the usage of all models that the answer took; `None`: none reported any.
    pub usage: Option<ChatUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// In the last part: the cost of that; `None`: no model was asked.
    pub cost: Option<AnswerCost>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    /// Those calls of models, one by one, in the last part: of a question that came by a door that counts `caller_depth`.
    pub calls: Vec<AnswerCall>,
}

message!(AgentResponse);

/// What the models cost that were asked for an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct AnswerCost {
    /// Dollars, as far as they are known; `None`: of no call.
    pub usd: Option<f64>,
    /// The same in euros; `None`: also where no rate is set.
    pub eur: Option<f64>,
    #[serde(deserialize_with = "nullable")]
    /// Source of the cost: `upstream` (reported by the providers), `table` (the workspace's prices), `local` (models that cost nothing),
    /// `unknown`, or `mixed`.
    pub source: String,
    #[serde(deserialize_with = "nullable")]
    /// Number of calls of models that it covers.
    pub sub_calls: i64,
}

message!(AnswerCost);

/// A call of a model that was made for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct AnswerCall {
    #[serde(deserialize_with = "nullable")]
    /// The model that answered; empty: not known.
    pub model: String,
    #[serde(deserialize_with = "nullable")]
    /// Tokens that it read.
    pub in_token: i64,
    #[serde(deserialize_with = "nullable")]
    /// Tokens that it wrote.
    pub out_token: i64,
    #[serde(deserialize_with = "nullable")]
    /// Of those that it read, what the provider had kept.
    pub cache_read: i64,
    #[serde(deserialize_with = "nullable")]
    /// Tokens that the provider keeps since then.
    pub cache_write: i64,
    /// Billionths of a dollar; `None`: not known.
    pub nanodollars: Option<i64>,
    #[serde(deserialize_with = "nullable")]
    /// Whether the reply broke off.
    pub failed: bool,
    #[serde(deserialize_with = "nullable")]
    /// The backend that answered; empty: not known, or there is one only.
    pub backend: String,
    /// How often a backend was asked for it; `None`: not known.
    pub attempts: Option<i64>,
    #[serde(deserialize_with = "nullable")]
    /// How its cost is known: `upstream`, `table`, `local` or `unknown`.
    pub source: String,
    #[serde(deserialize_with = "nullable")]
    /// Milliseconds that it took; 0: not known.
    pub duration_ms: i64,
}

message!(AnswerCall);

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
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    /// Depth that a question of the tool to an agent has: its `SPASS-Caller-Depth`; 0: nobody counts. Ours.
    pub caller_depth: i64,
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

/// A hook of the flow is asked before a tool is used, and is sent what the tool returned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ToolHookRequest {
    #[serde(deserialize_with = "nullable")]
    /// `before` or `after` the call.
    pub when: String,
    #[serde(deserialize_with = "nullable")]
    /// Name of the tool.
    pub tool: String,
    #[serde(deserialize_with = "nullable")]
    /// What kind of tool it is: `mcp-tool`, `graph-sparql` and so on.
    pub kind: String,
    #[serde(deserialize_with = "nullable")]
    /// What it is given, as a JSON object in text.
    pub arguments: String,
    #[serde(deserialize_with = "nullable")]
    /// What it returned; empty before.
    pub text: String,
    #[serde(deserialize_with = "nullable")]
    /// Id of the run.
    pub run: String,
    #[serde(deserialize_with = "nullable")]
    /// Number of the step, from 1.
    pub step: i64,
    #[serde(deserialize_with = "nullable")]
    /// Collection that the run reads.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// User who asks; empty: not known.
    pub user: String,
}

message!(ToolHookRequest);

/// What a hook decides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ToolHookResponse {
    /// What went wrong; `None`: nothing. Then it denies.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// `allow`, `deny`, or `replace` the arguments (before) or the text (after). Anything else denies.
    pub decision: String,
    #[serde(deserialize_with = "nullable")]
    /// Arguments to use instead, as a JSON object in text.
    pub arguments: String,
    #[serde(deserialize_with = "nullable")]
    /// Text to send the model instead.
    pub text: String,
    #[serde(deserialize_with = "nullable")]
    /// Why it denies, for the model.
    pub reason: String,
}

message!(ToolHookResponse);

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
    /// Whether nothing follows; true if the service leaves it out.
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

/// A call of a tool as the guards of an agent remember it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct LoopRecord {
    /// The tool.
    #[serde(deserialize_with = "nullable")]
    pub t: String,
    /// Hash of what it was given: SHA-256 in hex digits, of JSON in its canonical form.
    #[serde(deserialize_with = "nullable")]
    pub a: String,
    /// Hash of what it returned; empty: not known yet.
    #[serde(deserialize_with = "nullable")]
    pub r: String,
}

message!(LoopRecord);

/// A poll as the run remembers it that made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct PollRecord {
    /// The tool.
    #[serde(deserialize_with = "nullable")]
    pub t: String,
    /// Hash of what it was given.
    #[serde(deserialize_with = "nullable")]
    pub a: String,
    /// Hash of what it returned.
    #[serde(deserialize_with = "nullable")]
    pub r: String,
    /// How often it brought nothing new, one behind the other.
    #[serde(deserialize_with = "nullable")]
    pub n: i64,
    /// When it returned: UTC, in milliseconds.
    #[serde(deserialize_with = "nullable")]
    pub at: i64,
    /// What it returned, shortened.
    #[serde(deserialize_with = "nullable")]
    pub text: String,
}

message!(PollRecord);
