//! Streams that one gateway keeps and another one asks for, on `request:tg:kept-streams:{mark}` of the gateway that keeps them.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;
use crate::Error;

/// What one gateway asks another one about a stream, for a caller that it has authenticated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct KeptStreamRequest {
    /// `find-stream`, `read-stream` or `cancel-stream`.
    #[serde(deserialize_with = "nullable")]
    pub operation: String,
    /// The caller.
    #[serde(deserialize_with = "nullable")]
    pub user: String,
    /// The only capabilities that the caller's credential has of the user's; empty: all of them.
    #[serde(deserialize_with = "nullable")]
    pub scopes: Vec<String>,
    /// A stream of this workspace, whoever asked for it, instead of the caller's own: the text form of its key, `name` or
    /// `name#generation`.
    #[serde(deserialize_with = "nullable")]
    pub workspace: String,
    /// Id of the stream, without the mark of its gateway.
    #[serde(deserialize_with = "nullable")]
    pub id: String,
    /// Of `read-stream`: number of the first part that is read.
    #[serde(deserialize_with = "nullable")]
    pub from: i64,
}

message!(KeptStreamRequest);

/// What the gateway that keeps a stream replies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct KeptStreamResponse {
    /// Why there is nothing.
    pub error: Option<Error>,
    /// Of `find-stream`: the capability that reading it needs; empty: none.
    #[serde(deserialize_with = "nullable")]
    pub capability: String,
    /// Of `find-stream`: the workspace that it was asked in.
    #[serde(deserialize_with = "nullable")]
    pub workspace: String,
    /// Of `find-stream`: the generation of that workspace.
    #[serde(deserialize_with = "nullable")]
    pub generation: i64,
    /// Of `find-stream`: the flow that it was asked of; empty: none.
    #[serde(deserialize_with = "nullable")]
    pub flow: String,
    /// Of `cancel-stream`: whether it was over already.
    #[serde(deserialize_with = "nullable")]
    pub ended: bool,
    /// Of `read-stream`: number of the first of the parts. Parts between those that came before and this one are not kept.
    #[serde(deserialize_with = "nullable")]
    pub first: i64,
    /// Of `read-stream`: parts, each as JSON.
    #[serde(deserialize_with = "nullable")]
    pub parts: Vec<String>,
    /// The one part is only a piece, and the first of the next message continues it.
    #[serde(deserialize_with = "nullable")]
    pub cut: bool,
    /// Others follow.
    #[serde(deserialize_with = "nullable")]
    pub more: bool,
}

message!(KeptStreamResponse);
