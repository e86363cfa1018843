//! Metadata that travels with data records. Field names, order and defaults are the wire contract.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;

/// The `Metadata` message body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Metadata {
    #[serde(deserialize_with = "nullable")]
    /// Wire field `id`.
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `root`.
    pub root: String,
    #[serde(deserialize_with = "nullable")]
    /// Wire field `collection`.
    pub collection: String,
}

message!(Metadata);
