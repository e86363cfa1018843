//! Records that only native processes exchange: usage, dead letters, presence.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;
use super::tasks::AgentTask;
use crate::Headers;
use crate::codec::{self, CodecError, ContentType};
use crate::error::Error;

/// One model call, published by llm on `flow:tg:usage:{workspace}:{id}` for metering and monitoring.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Usage {
    /// Id of the question that caused the call.
    #[serde(deserialize_with = "nullable")]
    pub id: String,
    /// Processor that made the call.
    #[serde(deserialize_with = "nullable")]
    pub processor: String,
    /// Model that answered.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
    /// Input tokens.
    #[serde(deserialize_with = "nullable")]
    pub in_token: i64,
    /// Output tokens.
    #[serde(deserialize_with = "nullable")]
    pub out_token: i64,
    /// Input tokens that came out of the provider's cache; among `in_token` or beside them, as the provider counts.
    #[serde(deserialize_with = "nullable")]
    pub cache_read: i64,
    /// Tokens that went into it.
    #[serde(deserialize_with = "nullable")]
    pub cache_write: i64,
    /// Whether `out_token` is an estimate by the length of the answer: the provider reported none.
    #[serde(deserialize_with = "nullable")]
    pub estimated: bool,
    /// Duration of the call in milliseconds.
    #[serde(deserialize_with = "nullable")]
    pub duration_ms: i64,
    /// `ok` or the wire type of the error.
    #[serde(deserialize_with = "nullable")]
    pub outcome: String,
}

message!(Usage; RECORD);

/// A record that could not be handled now; travels to the flow service's one durable queue. Its body travels
/// as it is, everything else in the header `aside`. In earlier releases it was one message with the body as
/// base64 text: such records are still read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct DeadLetter {
    /// Topic the record was published to, e.g. `flow:tg:triples-store:default:default`.
    #[serde(deserialize_with = "nullable")]
    pub topic: String,
    /// Subscription it belongs to, e.g. `triples-write--default--default--input`.
    #[serde(deserialize_with = "nullable")]
    pub subscription: String,
    /// `retry`, `dead`, `stale` or `parked`.
    #[serde(deserialize_with = "nullable")]
    pub reason: String,
    /// What went wrong, safe to show to an operator of the workspace.
    #[serde(deserialize_with = "nullable")]
    pub detail: String,
    /// Wire type of the error; empty where there was none.
    #[serde(deserialize_with = "nullable")]
    pub kind: String,
    /// When a `retry` is due, milliseconds since the Unix epoch.
    #[serde(deserialize_with = "nullable")]
    pub due_ms: i64,
    /// Envelope headers of the record as a JSON object.
    #[serde(deserialize_with = "nullable")]
    pub headers: String,
    /// Content type of the body.
    #[serde(deserialize_with = "nullable")]
    pub content_type: String,
    /// The body as base64 text, in records of earlier releases; empty since.
    #[serde(deserialize_with = "nullable")]
    pub body: String,
    /// Workspace of the flow.
    #[serde(deserialize_with = "nullable")]
    pub workspace: String,
    /// Flow id.
    #[serde(deserialize_with = "nullable")]
    pub flow: String,
    /// The body as it travelled.
    #[serde(skip)]
    pub raw: Option<Bytes>,
}

impl DeadLetter {
    /// The record's body.
    ///
    /// # Errors
    /// The text as it is, where a record of an earlier release holds no base64.
    pub fn into_body(self) -> Result<Bytes, Bytes> {
        match self.raw {
            Some(raw) => Ok(raw),
            None => STANDARD
                .decode(&self.body)
                .map(Bytes::from)
                .map_err(|_| Bytes::from(self.body)),
        }
    }
}

impl crate::Message for DeadLetter {
    const NAME: &'static str = "PutAside";
    const AVRO: &'static str = include_str!("../../avro/PutAside.avsc");
    const RECORD: bool = true;

    fn beside(headers: &Headers, body: &Bytes) -> Option<Result<Self, CodecError>> {
        let said = headers.aside.as_deref()?;
        let read = codec::decode::<Self>(said.as_bytes(), ContentType::Json);
        Some(read.map(|record| Self {
            raw: Some(body.clone()),
            ..record
        }))
    }
}

/// What one process hosts, announced on `notify:tg:control` at each change, on request and every 5 s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Presence {
    /// Inbox name of the process: its identity.
    #[serde(deserialize_with = "nullable")]
    pub process: String,
    /// `full` (list is complete), `rooms` (only `full_rooms`, complete), `purging` (only `purging_refused`, complete), `disk` (only `disk_full`), `alive` (nothing changed), `bye`, or `who` (asks everybody for `full`).
    #[serde(deserialize_with = "nullable")]
    pub kind: String,
    /// One entry per hosted processor.
    #[serde(deserialize_with = "nullable")]
    pub processors: Vec<HostedProcessor>,
    /// Rooms of dead letters and retries that are full, as `workspace` or `workspace:flow`, of the workspace the text
    /// form of its key; told by the flow
    /// service, complete in `full` and `rooms`. Records that could not be handled stay in their queues meanwhile.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub full_rooms: Vec<String>,
    /// Stores of the process that purge nothing of deleted workspaces, each with the reason: the configuration is not
    /// the one that they knew. Complete in `full` and `purging`.
    #[serde(deserialize_with = "nullable")]
    pub purging_refused: BTreeMap<String, String>,
    /// The disk below the stores of the process is full: what is to be stored there waits or is refused. Said in `full` and
    /// `disk`.
    #[serde(deserialize_with = "nullable")]
    pub disk_full: bool,
}

message!(Presence);

/// A processor hosted by a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct HostedProcessor {
    /// Processor id.
    #[serde(deserialize_with = "nullable")]
    pub id: String,
    /// `serving` or `standby`.
    #[serde(deserialize_with = "nullable")]
    pub state: String,
    /// Flow instances, for flow processors.
    #[serde(deserialize_with = "nullable")]
    pub flows: Vec<HostedFlow>,
}

message!(HostedProcessor);

/// One flow instance of a hosted processor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct HostedFlow {
    /// Workspace.
    #[serde(deserialize_with = "nullable")]
    pub workspace: String,
    /// Variant key of the processor row, normally the flow id.
    #[serde(deserialize_with = "nullable")]
    pub flow: String,
    /// Epoch it attached under.
    #[serde(deserialize_with = "nullable")]
    pub epoch: i64,
    /// Messages in progress.
    #[serde(deserialize_with = "nullable")]
    pub busy: i64,
    /// It knows that the flow stops.
    #[serde(deserialize_with = "nullable")]
    pub stopping: bool,
    /// Messages that were handled since then, by subscription.
    #[serde(deserialize_with = "nullable")]
    pub done: BTreeMap<String, i64>,
    /// Messages that were handled before, by subscription.
    #[serde(deserialize_with = "nullable")]
    pub answered: BTreeMap<String, i64>,
}

message!(HostedFlow);

/// A question to the agent about its runs, on `request:tg:agent-runs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct AgentRunsRequest {
    /// `list-runs`, `list-tasks`, or of the run with `id`: `cancel-run`, `read-run`, `replay-run`, `leave-run` when its asker is gone,
    /// `confirm-run`, `why-run`, `expand-summary`, `remake-summary`.
    #[serde(deserialize_with = "nullable")]
    pub operation: String,
    /// Whose runs.
    #[serde(deserialize_with = "nullable")]
    pub user: String,
    /// Those of this workspace instead, whoever asked for them: the text form of its key, `name` or `name#generation`.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub workspace: String,
    /// Id of the question that began the run; in `list-runs`, with `all`: that one alone.
    #[serde(deserialize_with = "nullable")]
    pub id: String,
    /// Not only those that go on without their caller and are under way: all that are known.
    #[serde(deserialize_with = "nullable")]
    pub all: bool,
    /// Number of the first part that is read.
    #[serde(deserialize_with = "nullable")]
    pub from: i64,
    /// Longest page of a list; 0: all of it.
    #[serde(deserialize_with = "nullable")]
    pub limit: i64,
    /// Where the page begins, as `next` of the one before says.
    #[serde(deserialize_with = "nullable")]
    pub after: String,
    /// Of `confirm-run`: `yes` or `no`.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub answer: String,
    /// Of `confirm-run`: the question that is answered, by its `message_id`; empty: the only one so far.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub asked: String,
    /// Of `expand-summary` and `remake-summary`: the step before which earlier ones were summed up; 0: the last such.
    #[serde(deserialize_with = "nullable")]
    pub step: i64,
    /// Of `remake-summary`: the model that sums up.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub model: String,
}

message!(AgentRunsRequest);

/// A run of the agent that somebody asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct DetachedRun {
    /// Id of the question that began it.
    #[serde(deserialize_with = "nullable")]
    pub id: String,
    /// Its workspace.
    #[serde(deserialize_with = "nullable")]
    pub workspace: String,
    /// Which workspace of that name.
    #[serde(deserialize_with = "nullable")]
    pub generation: i64,
    /// Its flow.
    #[serde(deserialize_with = "nullable")]
    pub flow: String,
    /// Id of the client's request that is behind it; empty: none.
    #[serde(deserialize_with = "nullable")]
    pub request_id: String,
    /// When it began, milliseconds since the Unix epoch.
    #[serde(deserialize_with = "nullable")]
    pub started_ms: i64,
    /// Who asked for it.
    #[serde(deserialize_with = "nullable")]
    pub user: String,
    /// `running`, `cancelled` or `ended`.
    #[serde(deserialize_with = "nullable")]
    pub state: String,
    /// What becomes of it when its caller goes: `cancel`, `detach` or `grace=<seconds>`.
    #[serde(deserialize_with = "nullable")]
    pub on_disconnect: String,
}

message!(DetachedRun);

/// A call of a tool in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RunToolCall {
    /// The tool.
    #[serde(deserialize_with = "nullable")]
    pub tool: String,
    /// What it returned is known; else it may or may not have had its effect.
    #[serde(deserialize_with = "nullable")]
    pub returned: bool,
    /// It returned an error.
    #[serde(deserialize_with = "nullable")]
    pub failed: bool,
}

message!(RunToolCall);

/// What has happened in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RunHappened {
    /// Nothing more comes.
    #[serde(deserialize_with = "nullable")]
    pub over: bool,
    /// Steps that were decided.
    #[serde(deserialize_with = "nullable")]
    pub steps: i64,
    /// Calls of tools, in order.
    #[serde(deserialize_with = "nullable")]
    pub calls: Vec<RunToolCall>,
    /// Tokens that its model was sent.
    #[serde(deserialize_with = "nullable")]
    pub in_token: i64,
    /// Tokens that it said.
    #[serde(deserialize_with = "nullable")]
    pub out_token: i64,
}

message!(RunHappened);

/// Where a run, or one of its subagents, stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RunStanding {
    /// Id of the subagent's run; empty: the run itself.
    #[serde(deserialize_with = "nullable")]
    pub subagent: String,
    /// The step that is under way, from 1.
    #[serde(deserialize_with = "nullable")]
    pub step: i64,
    /// `model`, `tool`, `user`, `subagents`, `process` (none has taken the step) or `nothing`.
    #[serde(deserialize_with = "nullable")]
    pub waits_for: String,
    /// The tool that was chosen, if one was.
    #[serde(deserialize_with = "nullable")]
    pub tool: String,
    /// Since when it waits, milliseconds since the Unix epoch.
    #[serde(deserialize_with = "nullable")]
    pub since_ms: i64,
    /// Of `user`: until when.
    #[serde(deserialize_with = "nullable")]
    pub until_ms: i64,
    /// Of `user`: what is asked, by its `message_id`.
    #[serde(deserialize_with = "nullable")]
    pub asked: String,
    /// Why it ended, where it did so without an answer.
    #[serde(deserialize_with = "nullable")]
    pub ended: String,
    /// Of the run itself: when it ends, whatever it waits for.
    #[serde(deserialize_with = "nullable")]
    pub deadline_ms: i64,
}

message!(RunStanding);

/// A step of a run that a summary stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct SummedStep {
    /// Its number, from 1; 0: it came with the question.
    #[serde(deserialize_with = "nullable")]
    pub step: i64,
    /// What the model thought.
    #[serde(deserialize_with = "nullable")]
    pub thought: String,
    /// The tool.
    #[serde(deserialize_with = "nullable")]
    pub action: String,
    /// What it was given, as JSON text.
    #[serde(deserialize_with = "nullable")]
    pub arguments: String,
    /// What it returned, as the model was shown it.
    #[serde(deserialize_with = "nullable")]
    pub observation: String,
}

message!(SummedStep);

/// A summary of earlier steps of a run: the one that it went on with, or one that was made again later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RunSummary {
    /// The step before which it was made.
    #[serde(deserialize_with = "nullable")]
    pub step: i64,
    /// Its entity in the trace.
    #[serde(deserialize_with = "nullable")]
    pub trace: String,
    /// How good it is: `full`, `partial`, `note` or `hard_clear`.
    #[serde(deserialize_with = "nullable")]
    pub tier: String,
    /// The summary; empty: the steps were left out.
    #[serde(deserialize_with = "nullable")]
    pub text: String,
    /// The model that wrote it; empty: none did.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
    /// The prompt that asked for it; empty: none did.
    #[serde(deserialize_with = "nullable")]
    pub prompt: String,
    /// Tokens, about, of question and steps before.
    #[serde(deserialize_with = "nullable")]
    pub tokens_before: i64,
    /// The same with it.
    #[serde(deserialize_with = "nullable")]
    pub tokens_after: i64,
    /// When it was made again, milliseconds since the Unix epoch; 0: the run went on with it.
    #[serde(deserialize_with = "nullable")]
    pub created_ms: i64,
}

message!(RunSummary);

/// What the agent says of its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct AgentRunsResponse {
    /// Why it says nothing.
    pub error: Option<Error>,
    /// In the order of their ids.
    #[serde(deserialize_with = "nullable")]
    pub runs: Vec<DetachedRun>,
    /// `after` of the next page; empty: there is none.
    #[serde(deserialize_with = "nullable")]
    pub next: String,
    /// Number of the first of the parts. Parts between those that came before and this one are not kept.
    #[serde(deserialize_with = "nullable")]
    pub first: i64,
    /// Parts of the answer, each an `AgentResponse` as JSON.
    #[serde(deserialize_with = "nullable")]
    pub parts: Vec<String>,
    /// Others follow.
    #[serde(deserialize_with = "nullable")]
    pub more: bool,
    /// What had happened in the run that was cancelled.
    pub happened: Option<RunHappened>,
    /// Where the run that was asked about stands, and behind it its subagents that are not over.
    #[serde(deserialize_with = "nullable")]
    pub standing: Vec<RunStanding>,
    /// Tasks, in the order in which they were given.
    #[serde(deserialize_with = "nullable")]
    pub tasks: Vec<AgentTask>,
    /// The summary that was asked about, and behind it those that were made again of the same steps, the oldest first.
    #[serde(deserialize_with = "nullable")]
    pub summaries: Vec<RunSummary>,
    /// The steps that these stand for, the oldest first.
    #[serde(deserialize_with = "nullable")]
    pub summed: Vec<SummedStep>,
}

message!(AgentRunsResponse);
