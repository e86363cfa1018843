//! Questions and answers of the operations that [`crate::operations`] declares. Ours.
//!
//! One pair of messages carries all of them: the types of an operation say what its object holds.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::lenient::nullable;
use super::message;
use crate::error::Error;

/// Calls an operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct OperationRequest {
    #[serde(deserialize_with = "nullable")]
    /// Name of the operation.
    pub operation: String,
    #[serde(deserialize_with = "nullable")]
    /// Its request.
    pub request: Map<String, Value>,
}

message!(OperationRequest);

/// One part of its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct OperationResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// Beside `error`: the operation's own error. Empty where the operation was not reached.
    pub failure: Map<String, Value>,
    #[serde(deserialize_with = "nullable")]
    /// Name of the event that a chunk reports; empty in the last part.
    pub event: String,
    #[serde(deserialize_with = "nullable")]
    /// The chunk, or the reply in the last part.
    pub data: Map<String, Value>,
    #[serde(deserialize_with = "nullable")]
    /// Whether nothing follows.
    pub last: bool,
}

message!(OperationResponse);
