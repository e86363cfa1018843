//! Records that only native processes exchange: usage, dead letters, presence.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;
use super::metadata::DEFAULT_COLLECTION;
use super::rag::Citation;
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
    /// Duration of the call in milliseconds.
    #[serde(deserialize_with = "nullable")]
    pub duration_ms: i64,
    /// `ok` or the wire type of the error.
    #[serde(deserialize_with = "nullable")]
    pub outcome: String,
}

message!(Usage);

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

    fn beside(headers: &Headers, body: &Bytes) -> Option<Result<Self, CodecError>> {
        let said = headers.aside.as_deref()?;
        let read = codec::decode::<Self>(said.as_bytes(), ContentType::Json);
        Some(read.map(|record| Self {
            raw: Some(body.clone()),
            ..record
        }))
    }
}

/// What one process hosts, told on `notify:tg:control` at each change, on request and every 5 s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Presence {
    /// Inbox name of the process: its identity.
    #[serde(deserialize_with = "nullable")]
    pub process: String,
    /// `full` (list is complete), `rooms` (only `full_rooms`, complete), `purging` (only `purging_refused`, complete), `alive` (nothing changed), `bye`, or `who` (asks everybody for `full`).
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
}

message!(HostedFlow);

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
}

message!(AgentRunStep);

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
}

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
        }
    }
}

message!(AgentRun);

/// A question to the agent about runs that go on without their caller, on `request:tg:agent-runs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct AgentRunsRequest {
    /// `list-runs`, or `cancel-run` of the one with `id`.
    #[serde(deserialize_with = "nullable")]
    pub operation: String,
    /// Whose runs.
    #[serde(deserialize_with = "nullable")]
    pub user: String,
    /// Id of the run that is cancelled.
    #[serde(deserialize_with = "nullable")]
    pub id: String,
    /// Longest page of a list; 0: all of it.
    #[serde(deserialize_with = "nullable")]
    pub limit: i64,
    /// Where the page begins, as `next` of the one before says.
    #[serde(deserialize_with = "nullable")]
    pub after: String,
}

message!(AgentRunsRequest);

/// A run of the agent that goes on without its caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct DetachedRun {
    /// Id of the question that began it.
    #[serde(deserialize_with = "nullable")]
    pub id: String,
    /// Its workspace.
    #[serde(deserialize_with = "nullable")]
    pub workspace: String,
    /// Its flow.
    #[serde(deserialize_with = "nullable")]
    pub flow: String,
    /// Id of the client's request that is behind it; empty: none.
    #[serde(deserialize_with = "nullable")]
    pub request_id: String,
    /// When it began, milliseconds since the Unix epoch.
    #[serde(deserialize_with = "nullable")]
    pub started_ms: i64,
}

message!(DetachedRun);

/// What the agent says of such runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct AgentRunsResponse {
    /// Why it says nothing.
    pub error: Option<Error>,
    /// Those that are under way, in the order of their ids.
    #[serde(deserialize_with = "nullable")]
    pub runs: Vec<DetachedRun>,
    /// `after` of the next page; empty: there is none.
    #[serde(deserialize_with = "nullable")]
    pub next: String,
}

message!(AgentRunsResponse);
