//! Records that only native processes exchange: usage, put-aside records, presence.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;

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

/// A record that could not be handled now; travels to the flow service's one durable queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct PutAside {
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
    /// When a `retry` is due, milliseconds since the Unix epoch.
    #[serde(deserialize_with = "nullable")]
    pub due_ms: i64,
    /// Envelope headers of the record as a JSON object.
    #[serde(deserialize_with = "nullable")]
    pub headers: String,
    /// Content type of the body.
    #[serde(deserialize_with = "nullable")]
    pub content_type: String,
    /// The body, base64.
    #[serde(deserialize_with = "nullable")]
    pub body: String,
    /// Workspace of the flow.
    #[serde(deserialize_with = "nullable")]
    pub workspace: String,
    /// Flow id.
    #[serde(deserialize_with = "nullable")]
    pub flow: String,
}

message!(PutAside);

/// What one process hosts, told on `notify:tg:control` at each change, on request and every 5 s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Presence {
    /// Inbox name of the process: its identity.
    #[serde(deserialize_with = "nullable")]
    pub process: String,
    /// `full` (list is complete), `alive` (nothing changed), `bye`, or `who` (asks everybody for `full`).
    #[serde(deserialize_with = "nullable")]
    pub kind: String,
    /// One entry per hosted processor.
    #[serde(deserialize_with = "nullable")]
    pub processors: Vec<HostedProcessor>,
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
}

message!(HostedFlow);
