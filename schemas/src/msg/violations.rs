//! Statements that do not fit the ontologies of a workspace, and are kept instead of written. Ours.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;
use crate::error::Error;

/// Asks for the violations of a workspace. `id`, `flow` and `collection` choose: those that are empty choose all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ViolationsRequest {
    #[serde(deserialize_with = "nullable")]
    /// `list-violations`, `replay-violations` or `discard-violations`.
    pub operation: String,
    #[serde(deserialize_with = "nullable")]
    /// This one.
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    /// Those of this flow.
    pub flow: String,
    #[serde(deserialize_with = "nullable")]
    /// Those for this collection.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// `list-violations`: entries of a page at most; 0: all.
    pub limit: i64,
    #[serde(deserialize_with = "nullable")]
    /// `list-violations`, `replay-violations`: `next` of the answer before; empty: from the first.
    pub after: String,
}

message!(ViolationsRequest);

/// A statement that was not written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Violation {
    #[serde(deserialize_with = "nullable")]
    /// By this it is asked for.
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    /// Flow that found it.
    pub flow: String,
    #[serde(deserialize_with = "nullable")]
    /// Collection that it was for.
    pub collection: String,
    #[serde(deserialize_with = "nullable")]
    /// Document whose chunk says it.
    pub document: String,
    #[serde(deserialize_with = "nullable")]
    /// The chunk.
    pub chunk: String,
    #[serde(deserialize_with = "nullable")]
    /// The statement, as a JSON object in text.
    pub statement: String,
    #[serde(deserialize_with = "nullable")]
    /// Why it does not fit.
    pub reason: String,
    #[serde(deserialize_with = "nullable")]
    /// Model that said it; empty where it did not say which it is.
    pub model: String,
    #[serde(deserialize_with = "nullable")]
    /// When the model was asked: UTC, ISO 8601 with `Z`.
    pub asked_at: String,
}

message!(Violation);

/// What there is of them, or what became of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ViolationsResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// `list-violations`: the oldest first.
    pub violations: Vec<Violation>,
    #[serde(deserialize_with = "nullable")]
    /// `list-violations`, `replay-violations`: `after` of the next question; empty: that was all.
    pub next: String,
    #[serde(deserialize_with = "nullable")]
    /// `list-violations`: how many of the workspace went without being replayed, as there were too many.
    pub dropped: i64,
    #[serde(deserialize_with = "nullable")]
    /// `replay-violations`: how many fit now, and were written.
    pub replayed: i64,
    #[serde(deserialize_with = "nullable")]
    /// `replay-violations`: how many do not, and are kept.
    pub kept: i64,
    #[serde(deserialize_with = "nullable")]
    /// `replay-violations`, `discard-violations`: how many went unwritten; of a replay those whose collection is gone.
    pub discarded: i64,
}

message!(ViolationsResponse);
