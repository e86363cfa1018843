//! Signed heads of traces, asked of the agent on `request:tg:traces:{workspace}`.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;
use crate::Error;

/// A question about the signed heads of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct TracesRequest {
    /// `sign-traces` of a day, `list-ended-runs` of a day, `get-signing-key`, `rotate-signing-key` or `revoke-signing-key`.
    #[serde(deserialize_with = "nullable")]
    pub operation: String,
    /// The day in UTC, `YYYY-MM-DD`; empty: today.
    #[serde(deserialize_with = "nullable")]
    pub day: String,
    /// Longest page of a list; 0: all of it.
    #[serde(deserialize_with = "nullable")]
    pub limit: i64,
    /// Where the page begins, as `next` of the one before says.
    #[serde(deserialize_with = "nullable")]
    pub after: String,
    /// `revoke-signing-key`: id of the key, as heads name it.
    #[serde(deserialize_with = "nullable")]
    pub key_id: String,
    /// `revoke-signing-key`: what it signed from this instant on does not count, RFC 3339; empty: from now.
    #[serde(deserialize_with = "nullable")]
    pub revoked_from: String,
}

message!(TracesRequest);

/// A run that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct EndedRun {
    /// IRI of its question.
    #[serde(deserialize_with = "nullable")]
    pub run: String,
    /// Collection of its trace.
    #[serde(deserialize_with = "nullable")]
    pub collection: String,
    /// Entity hash of its end.
    #[serde(deserialize_with = "nullable")]
    pub hash: String,
}

message!(EndedRun);

/// What the agent says of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct TracesResponse {
    /// Why it says nothing.
    pub error: Option<Error>,
    /// `sign-traces`: the head, the text that is signed.
    #[serde(deserialize_with = "nullable")]
    pub head: String,
    /// Its Ed25519 signature in base64.
    #[serde(deserialize_with = "nullable")]
    pub signature: String,
    /// The public key that verifies it, as PEM.
    #[serde(deserialize_with = "nullable")]
    pub key: String,
    /// `list-ended-runs`: in the order in which they ended.
    #[serde(deserialize_with = "nullable")]
    pub runs: Vec<EndedRun>,
    /// `after` of the next page; empty: there is none.
    #[serde(deserialize_with = "nullable")]
    pub next: String,
}

message!(TracesResponse);
