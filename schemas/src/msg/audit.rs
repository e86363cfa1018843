//! Audit events: as foreign peers say them, which is the wire contract, and as ours are kept.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;
use crate::error::Error;

/// Something that is to be kept for an audit, on `notify:tg:audit-events`. Of ours the sessions service sends the lines of its trail
/// so, and nobody reads them. What ours keeps are [`AuditEntry`]s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditEvent {
    #[serde(deserialize_with = "nullable")]
    /// Version of this form; 1.
    pub schema_version: i64,
    #[serde(deserialize_with = "nullable")]
    /// Id of the event, a UUID.
    pub event_id: String,
    #[serde(deserialize_with = "nullable")]
    /// What happened, as a name with dots, such as `authorise.denied`.
    pub event_type: String,
    #[serde(deserialize_with = "nullable")]
    /// When it happened, as text in RFC 3339.
    pub timestamp: String,
    #[serde(deserialize_with = "nullable")]
    /// The service that says so.
    pub producer: String,
    #[serde(deserialize_with = "nullable")]
    /// What else is known, as a JSON object in text; which keys it has depends on `event_type`.
    pub payload_json: String,
}

impl Default for AuditEvent {
    fn default() -> Self {
        Self {
            schema_version: 1,
            event_id: Default::default(),
            event_type: Default::default(),
            timestamp: Default::default(),
            producer: Default::default(),
            payload_json: Default::default(),
        }
    }
}

message!(AuditEvent);

/// Something that somebody did or was refused. Ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct AuditEntry {
    #[serde(deserialize_with = "nullable")]
    /// Its number, which rises; 0 before it is kept.
    pub id: i64,
    #[serde(deserialize_with = "nullable")]
    /// When it happened, in milliseconds since 1970.
    pub time: i64,
    #[serde(deserialize_with = "nullable")]
    /// When it happened last, where `count` is more than one.
    pub until: i64,
    #[serde(deserialize_with = "nullable")]
    /// How often it happened since `time`.
    pub count: i64,
    #[serde(deserialize_with = "nullable")]
    /// `change`, `login`, `allowed`, `read`, `refused`, `stranger` or `lost`.
    pub kind: String,
    #[serde(deserialize_with = "nullable")]
    /// Workspace that it is about; empty: the system.
    pub workspace: String,
    #[serde(deserialize_with = "nullable")]
    /// Id of the user who did it; empty: nobody who is known.
    pub actor: String,
    #[serde(deserialize_with = "nullable")]
    /// What the actor came with: `key:` and the key's id, or `token`. Never what opens anything.
    pub credential: String,
    #[serde(deserialize_with = "nullable")]
    /// Endpoint that it came through, such as `rest` or `socket`.
    pub door: String,
    #[serde(deserialize_with = "nullable")]
    /// Address of whoever was connected; of IPv6 its first 64 bits.
    pub address: String,
    #[serde(deserialize_with = "nullable")]
    /// What was done or asked for, such as `create-user` or `config/put`.
    pub operation: String,
    #[serde(deserialize_with = "nullable")]
    /// What it was done to: `user`, `key`, `group`, `flow` and so on.
    pub target_kind: String,
    #[serde(deserialize_with = "nullable")]
    /// Id of that.
    pub target: String,
    #[serde(deserialize_with = "nullable")]
    /// `refused`, `stranger`: why, from a closed list.
    pub reason: String,
    #[serde(deserialize_with = "nullable")]
    /// `change`: what differs: of each field what it was (`before`) and what it is (`after`).
    pub changes: serde_json::Map<String, serde_json::Value>,
    #[serde(deserialize_with = "nullable")]
    /// Id that the gateway gave the request, of the last one where it happened more than once. No two have the same.
    pub request_id: String,
    #[serde(deserialize_with = "nullable")]
    /// What the client calls the request, or the connection that it came by. Anybody may give any.
    pub client_request_id: String,
}

message!(AuditEntry);

/// A question about what happened, or a batch of what did. Ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct AuditRequest {
    #[serde(deserialize_with = "nullable")]
    /// `list-events`; inside the system also `keep-events`.
    pub operation: String,
    #[serde(deserialize_with = "nullable")]
    /// `list-events`: id of the user who asks, as the gateway knows it.
    pub asker: String,
    #[serde(deserialize_with = "nullable")]
    /// `list-events`: only those of this workspace; empty: of all, and of the system.
    pub workspace: String,
    #[serde(deserialize_with = "nullable")]
    /// `list-events`: only those by this user.
    pub actor: String,
    #[serde(deserialize_with = "nullable")]
    /// `list-events`: only those of this kind.
    pub kind: String,
    #[serde(deserialize_with = "nullable")]
    /// `list-events`: only those from then on: RFC 3339, a date or a time without offset, which are UTC, or how
    /// long ago, such as `2h`.
    pub since: String,
    #[serde(deserialize_with = "nullable")]
    /// `list-events`: only those before then.
    pub until: String,
    #[serde(deserialize_with = "nullable")]
    /// `list-events`: most entries of a page, at most 1,000. 0: 1,000.
    pub limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// `list-events`: only what follows the page whose `next` said this.
    pub after: String,
    #[serde(deserialize_with = "nullable")]
    /// `keep-events`: the process that says so.
    pub source: String,
    #[serde(deserialize_with = "nullable")]
    /// `keep-events`: number of this batch, from 1; one that was kept already is not kept twice.
    pub sequence: i64,
    #[serde(deserialize_with = "nullable")]
    /// `keep-events`: what happened.
    pub entries: Vec<AuditEntry>,
}

message!(AuditRequest);

/// What of the audit is not there any more. Ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct AuditDropped {
    #[serde(deserialize_with = "nullable")]
    /// `kind` of the entries.
    pub kind: String,
    #[serde(deserialize_with = "nullable")]
    /// Their workspace; empty: of the system, or of no workspace of their own.
    pub workspace: String,
    #[serde(deserialize_with = "nullable")]
    /// How many there were.
    pub count: i64,
    #[serde(deserialize_with = "nullable")]
    /// When the last of them happened, in milliseconds since 1970.
    pub until: i64,
}

message!(AuditDropped);

/// What the audit answers. Ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct AuditResponse {
    #[serde(deserialize_with = "nullable")]
    /// `list-events`: a page, from the oldest on.
    pub entries: Vec<AuditEntry>,
    #[serde(deserialize_with = "nullable")]
    /// `list-events`: what made room for others, and is not listed any more.
    pub dropped: Vec<AuditDropped>,
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// `list-events`: where the next page begins, for `after`. On the last page, too: what happens later follows it.
    pub next: String,
}

message!(AuditResponse);
