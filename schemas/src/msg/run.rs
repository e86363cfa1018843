//! A run of the agent as it travels from step to step, between its own processes only.

use serde::{Deserialize, Serialize};

use super::agent::{AnswerCall, LoopRecord, PlanStep, PollRecord};
use super::lenient::nullable;
use super::llm::ModelSettings;
use super::message;
use super::metadata::DEFAULT_COLLECTION;
use super::rag::Citation;

/// One earlier step of an agent's run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct AgentRunStep {
    /// What the model thought.
    #[serde(deserialize_with = "nullable")]
    pub thought: String,
    /// Tool it chose.
    #[serde(deserialize_with = "nullable")]
    pub action: String,
    /// Arguments as a JSON object.
    #[serde(deserialize_with = "nullable")]
    pub arguments: String,
    /// What the tool returned, as the model sees it.
    #[serde(deserialize_with = "nullable")]
    pub observation: String,
    /// Whether the tool failed.
    #[serde(deserialize_with = "nullable")]
    pub failed: bool,
    /// Tools that it chose side by side, which `action` and `arguments` describe together; empty: it chose one.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<AgentRunCall>,
}

message!(AgentRunStep);

/// One of the calls that a step of an agent's run made side by side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct AgentRunCall {
    /// The tool.
    #[serde(deserialize_with = "nullable")]
    pub action: String,
    /// Arguments as a JSON object.
    #[serde(deserialize_with = "nullable")]
    pub arguments: String,
}

message!(AgentRunCall);

/// The next step of an agent's run, on `flow:tg:agent-step:{workspace}:{id}`: everything that whoever
/// takes it needs to go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentRun {
    /// Id of the run: the UUID in its trace's IRIs.
    #[serde(deserialize_with = "nullable")]
    pub run: String,
    /// Number of the step to take, from 1.
    #[serde(deserialize_with = "nullable")]
    pub step: i64,
    /// The question.
    #[serde(deserialize_with = "nullable")]
    pub question: String,
    /// State that selects tools.
    #[serde(deserialize_with = "nullable")]
    pub state: String,
    /// Tool groups asked for.
    pub group: Option<Vec<String>>,
    /// Collection that the run reads and its trace goes to.
    #[serde(deserialize_with = "nullable")]
    pub collection: String,
    /// Whether thoughts and answers are sent in pieces.
    #[serde(deserialize_with = "nullable")]
    pub streaming: bool,
    /// Domain text for the prompt.
    #[serde(deserialize_with = "nullable")]
    pub framing: String,
    /// Steps the model is shown, oldest first.
    #[serde(deserialize_with = "nullable")]
    pub history: Vec<AgentRunStep>,
    /// How many of them came with the question: context only, not steps of this run.
    #[serde(deserialize_with = "nullable")]
    pub prior: i64,
    /// When the run began: UTC, ISO 8601 with microseconds.
    #[serde(deserialize_with = "nullable")]
    pub started_at: String,
    /// Where its answer goes, and the number of the next part, as JSON.
    #[serde(deserialize_with = "nullable")]
    pub reply: String,
    /// Input tokens so far.
    #[serde(deserialize_with = "nullable")]
    pub in_token: i64,
    /// Output tokens so far.
    #[serde(deserialize_with = "nullable")]
    pub out_token: i64,
    /// Model that answered last.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
    /// How many questions deep the question was that began it.
    #[serde(deserialize_with = "nullable")]
    pub depth: i64,
    /// What the numbers in observations name so far.
    #[serde(deserialize_with = "nullable")]
    pub citations: Vec<Citation>,
    /// Hash of the last entity of its trace so far; empty before the first.
    #[serde(deserialize_with = "nullable")]
    pub chain: String,
    /// Pattern by which it is gone about; empty where nothing was chosen.
    #[serde(deserialize_with = "nullable")]
    pub pattern: String,
    /// Task type that the router found.
    #[serde(deserialize_with = "nullable")]
    pub task_type: String,
    /// The last calls of its session, oldest first. Empty in a run that an earlier release began: its steps say them.
    #[serde(deserialize_with = "nullable")]
    pub loop_window: Vec<LoopRecord>,
    /// Warnings of its guards that the model was given.
    #[serde(deserialize_with = "nullable")]
    pub told: Vec<String>,
    /// Whether the asker named the pattern; else the router chose it.
    #[serde(deserialize_with = "nullable")]
    pub named: bool,
    /// Steps of its plans so far, those of revisions behind those before; or the goals of its subagents.
    #[serde(deserialize_with = "nullable")]
    pub plan: Vec<PlanStep>,
    /// Where in them each revision begins.
    #[serde(deserialize_with = "nullable")]
    pub revisions: Vec<i64>,
    /// How often the plan may be revised yet.
    #[serde(deserialize_with = "nullable")]
    pub revisions_left: i64,
    /// Id of the run that it is a subagent of; empty: it is none.
    #[serde(deserialize_with = "nullable")]
    pub parent: String,
    /// Id of the conversation that it belongs to; empty: none.
    #[serde(deserialize_with = "nullable")]
    pub conversation: String,
    /// Id of the run that began all of which this one is a part, for a subagent: its budget is that run's. Empty: `parent` if there
    /// is one.
    #[serde(deserialize_with = "nullable")]
    pub root: String,
    /// IRI of what called it in its parent; empty: the split of the parent's question.
    #[serde(deserialize_with = "nullable")]
    pub caller: String,
    /// Id of the agent definition that it follows; empty: none.
    #[serde(deserialize_with = "nullable")]
    pub agent: String,
    /// How many calls of `delegate` and `dispatch` deep it is.
    #[serde(deserialize_with = "nullable")]
    pub delegate_depth: i64,
    /// What subagents found so far, by number.
    #[serde(deserialize_with = "nullable")]
    pub findings: i64,
    /// Roles that its asker has in the workspace, as the edge found them; those that a step's message says do not count.
    #[serde(deserialize_with = "nullable")]
    pub roles: Vec<String>,
    /// The only tools that it may ever use, by name, whatever it reads; `None` in a run that an earlier release began.
    pub tools: Option<Vec<String>>,
    /// Tools that the asker, or the key, lets it use without being asked.
    #[serde(deserialize_with = "nullable")]
    pub grant: Vec<String>,
    /// Whether what it hears of models and tools is kept, so that it can be replayed.
    #[serde(deserialize_with = "nullable")]
    pub record: bool,
    /// What the model is shown instead of the first steps of `history`; empty: nothing.
    #[serde(deserialize_with = "nullable")]
    pub summary: String,
    /// How many steps those are.
    #[serde(deserialize_with = "nullable")]
    pub summarised: i64,
    /// Session in which it was given its work; empty: its conversation, else itself.
    #[serde(deserialize_with = "nullable")]
    pub session: String,
    /// Session of the run that all began with, tasks included; empty: its own.
    #[serde(deserialize_with = "nullable")]
    pub tree: String,
    /// Polls that it made.
    #[serde(deserialize_with = "nullable")]
    pub polls: Vec<PollRecord>,
    /// Of the input tokens so far, what providers had kept.
    #[serde(deserialize_with = "nullable")]
    pub cache_read: i64,
    /// What the models cost so far; `None`: none was asked.
    pub cost: Option<RunCost>,
    /// Tokens that providers keep since then.
    #[serde(deserialize_with = "nullable")]
    pub cache_write: i64,
    /// How often the model said that it was shown too much, and was shown less.
    #[serde(deserialize_with = "nullable")]
    pub recoveries: i64,
    /// What its question says of the model; `None`: as the flow says.
    pub settings: Option<ModelSettings>,
    /// Most steps that it may take, as its question says; 0: as the service says.
    #[serde(deserialize_with = "nullable")]
    pub max_iterations: i64,
    /// Passages that a search returns where the model does not say how many; 0: as the tool says.
    #[serde(deserialize_with = "nullable")]
    pub top_k: i64,
    /// How many agents called each other before what a tool of the run asks, counted at the doors; 0: nobody counts.
    #[serde(deserialize_with = "nullable")]
    pub caller_depth: i64,
    /// Name of the agent that its usage counts for, unless it follows a definition; empty: none.
    #[serde(deserialize_with = "nullable")]
    pub account: String,
    /// Collections that tools over collections look into; empty: `collection`.
    #[serde(deserialize_with = "nullable")]
    pub collections: Vec<String>,
    /// Calls of models that were made so far, where who asked keeps a trail of them.
    #[serde(deserialize_with = "nullable")]
    pub calls: Vec<AnswerCall>,
    /// When there is too much of a loop, as its question says; empty: as the workspace says.
    #[serde(deserialize_with = "nullable")]
    pub loop_detection: String,
    /// The thread of listeners on which it was asked, for its trace; empty: none.
    #[serde(deserialize_with = "nullable")]
    pub thread: String,
    /// The thread of the listener that asked it; empty: none.
    #[serde(deserialize_with = "nullable")]
    pub parent_thread: String,
}

/// What calls of models cost, by how that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RunCost {
    /// Billionths of a dollar.
    pub nanodollars: i64,
    /// Calls of which the provider said it.
    pub upstream: i64,
    /// Calls that have a price.
    pub table: i64,
    /// Calls of models that cost nothing.
    pub local: i64,
    /// Calls of which it is not known.
    pub unknown: i64,
}

message!(RunCost);

impl Default for AgentRun {
    fn default() -> Self {
        Self {
            run: String::default(),
            step: 0,
            question: String::default(),
            state: String::default(),
            group: None,
            collection: DEFAULT_COLLECTION.to_owned(),
            streaming: false,
            framing: String::default(),
            history: Vec::default(),
            prior: 0,
            started_at: String::default(),
            reply: String::default(),
            in_token: 0,
            out_token: 0,
            model: String::default(),
            depth: 0,
            citations: Vec::new(),
            chain: String::default(),
            pattern: String::default(),
            task_type: String::default(),
            loop_window: Vec::new(),
            told: Vec::new(),
            named: false,
            plan: Vec::new(),
            revisions: Vec::new(),
            revisions_left: 0,
            parent: String::default(),
            conversation: String::default(),
            root: String::default(),
            caller: String::default(),
            agent: String::default(),
            delegate_depth: 0,
            findings: 0,
            roles: Vec::new(),
            tools: None,
            grant: Vec::new(),
            record: false,
            summary: String::default(),
            summarised: 0,
            session: String::default(),
            tree: String::default(),
            polls: Vec::new(),
            cache_read: 0,
            cost: None,
            cache_write: 0,
            recoveries: 0,
            settings: None,
            max_iterations: 0,
            top_k: 0,
            caller_depth: 0,
            account: String::default(),
            collections: Vec::new(),
            calls: Vec::new(),
            loop_detection: String::new(),
            thread: String::new(),
            parent_thread: String::new(),
        }
    }
}

message!(AgentRun; RECORD);
