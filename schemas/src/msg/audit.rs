//! Audit events. Field names, order and defaults are the wire contract.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;

/// Something that is to be kept for an audit. Ours writes none and reads none; for foreign peers.
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
