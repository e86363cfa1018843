//! Audit events. Field names, order and defaults are the wire contract.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;

/// The `AuditEvent` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditEvent {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `schema_version`.
    pub schema_version: i64,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `event_id`.
    pub event_id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `event_type`.
    pub event_type: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `timestamp`.
    pub timestamp: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `producer`.
    pub producer: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `payload_json`.
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
