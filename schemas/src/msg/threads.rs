//! Messages between listeners, and how one from outside enters. Ours.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::lenient::nullable;
use super::message;
use crate::error::Error;

/// What somebody outside wants of the threads of a workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ThreadsRequest {
    #[serde(deserialize_with = "nullable")]
    /// `send-message`, `list-listeners`, `list-refused-listeners`, `close-thread` or `show-thread`.
    pub operation: String,
    #[serde(deserialize_with = "nullable")]
    /// The flow whose listeners are meant.
    pub flow: String,
    #[serde(deserialize_with = "nullable")]
    /// The thread to go on with; empty: a new one.
    pub thread: String,
    #[serde(deserialize_with = "nullable")]
    /// `send-message`: whom it is for.
    pub to: String,
    #[serde(deserialize_with = "nullable")]
    /// `send-message`: type of the payload.
    pub r#type: String,
    #[serde(deserialize_with = "nullable")]
    /// `send-message`: the payload as it was sent, JSON in text.
    pub payload: String,
    #[serde(deserialize_with = "nullable")]
    /// `send-message`: whether a console sends it.
    pub console: bool,
    #[serde(deserialize_with = "nullable")]
    /// `send-message`: whether messages and pieces come one by one, as they are made.
    pub streaming: bool,
    /// Listings: most entries of a page, at most 10,000. 0: all, or an error where one answer does not hold them;
    /// with `after` 1,000.
    #[serde(deserialize_with = "nullable")]
    pub limit: i64,
    /// The same: only what follows the page whose `next` said this.
    #[serde(deserialize_with = "nullable")]
    pub after: String,
    /// `send-message`: tools that the flow's agent uses for the caller without asking first, by the caller's key.
    #[serde(deserialize_with = "nullable")]
    pub grant: Vec<String>,
}

message!(ThreadsRequest);

/// A message that reached whoever is outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ThreadMessage {
    #[serde(deserialize_with = "nullable")]
    /// Its thread.
    pub thread: String,
    #[serde(deserialize_with = "nullable")]
    /// Who sent it.
    pub from: String,
    #[serde(deserialize_with = "nullable")]
    /// Type of the payload.
    pub r#type: String,
    #[serde(deserialize_with = "nullable")]
    /// What it says.
    pub payload: Map<String, Value>,
}

message!(ThreadMessage);

/// A listener, as anybody may know it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ListenerInfo {
    #[serde(deserialize_with = "nullable")]
    /// Its name.
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    /// What it is for.
    pub description: String,
    #[serde(deserialize_with = "nullable")]
    /// Types that it takes.
    pub types: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// Whether a model drives it.
    pub agent: bool,
    #[serde(deserialize_with = "nullable")]
    /// `list-refused-listeners`: why its row cannot be used.
    pub why: String,
}

message!(ListenerInfo);

/// A listener's work on a message that is in progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ThreadTurn {
    #[serde(deserialize_with = "nullable")]
    /// Who has the message, or is about to get it.
    pub listener: String,
    #[serde(deserialize_with = "nullable")]
    /// Since when, in milliseconds since 1970.
    pub since_ms: i64,
    #[serde(deserialize_with = "nullable")]
    /// `process`: no process has taken it; `answer`: one has; empty: it is not known.
    pub waits_for: String,
    #[serde(deserialize_with = "nullable")]
    /// `answer`: how long ago the process gave the last sign, in milliseconds.
    pub silent_ms: i64,
}

message!(ThreadTurn);

/// What comes back of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ThreadsResponse {
    /// What went wrong; `None`: nothing.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// `send-message`: the thread to go on with.
    pub thread: String,
    #[serde(deserialize_with = "nullable")]
    /// Who says the piece.
    pub source: String,
    #[serde(deserialize_with = "nullable")]
    /// A piece of what a listener is about to say.
    pub chunk: String,
    #[serde(deserialize_with = "nullable")]
    /// Messages for whoever sent it.
    pub messages: Vec<ThreadMessage>,
    #[serde(deserialize_with = "nullable")]
    /// Listings: by name.
    pub listeners: Vec<ListenerInfo>,
    #[serde(deserialize_with = "nullable")]
    /// Listings: how to ask for what follows; empty: nothing does.
    pub next: String,
    #[serde(deserialize_with = "nullable")]
    /// `show-thread`: the names of its chain.
    pub chain: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    /// `show-thread`: the turns that run on it and on the other threads of its tree: the 100 that began first.
    pub turns: Vec<ThreadTurn>,
    #[serde(deserialize_with = "nullable")]
    /// `show-thread`: messages that are in progress or wait there.
    pub in_progress: i64,
    #[serde(deserialize_with = "nullable")]
    /// `close-thread`: how many threads ended.
    pub closed: i64,
    #[serde(deserialize_with = "nullable")]
    /// Nothing follows.
    pub end_of_stream: bool,
}

message!(ThreadsResponse);

/// A message for a listener, with all that it receives about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ListenerRequest {
    #[serde(deserialize_with = "nullable")]
    /// The thread: whatever is kept for it is kept under this.
    pub thread_id: String,
    #[serde(deserialize_with = "nullable")]
    /// When the thread began, in milliseconds since 1970. Whatever is kept under its id from before is of an earlier thread.
    pub since_ms: i64,
    #[serde(deserialize_with = "nullable")]
    /// Who sent it.
    pub from_id: String,
    /// The listener's own name; agents only.
    pub own_name: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// Whether it sent it itself.
    pub is_self_call: bool,
    /// How to use its peers; agents only.
    pub usage_instructions: Option<String>,
    #[serde(deserialize_with = "nullable")]
    /// Type of the payload.
    pub r#type: String,
    #[serde(deserialize_with = "nullable")]
    /// What it says.
    pub payload: Map<String, Value>,
}

message!(ListenerRequest);

/// A message that a listener sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ListenerMessage {
    #[serde(deserialize_with = "nullable")]
    /// Whom it is for; empty in a respond.
    pub to: String,
    #[serde(deserialize_with = "nullable")]
    /// Type of the payload.
    pub r#type: String,
    #[serde(deserialize_with = "nullable")]
    /// What it says.
    pub payload: Map<String, Value>,
}

message!(ListenerMessage);

/// What a listener returns: pieces, and at last messages to others and an answer. Neither of both is `none`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ListenerResponse {
    /// What went wrong; `None`: nothing. Its text is only noted.
    pub error: Option<Error>,
    #[serde(deserialize_with = "nullable")]
    /// A piece of what it is about to say, for whoever is outside.
    pub chunk: String,
    #[serde(deserialize_with = "nullable")]
    /// Messages to other listeners, in order.
    pub forwards: Vec<ListenerMessage>,
    /// The answer to whoever called.
    pub respond: Option<ListenerMessage>,
    #[serde(deserialize_with = "nullable")]
    /// Nothing follows.
    pub end_of_stream: bool,
}

message!(ListenerResponse);

/// Threads that have ended: whatever is kept for them may go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ThreadsEnded {
    #[serde(deserialize_with = "nullable")]
    /// Their ids.
    pub thread_ids: Vec<String>,
}

message!(ThreadsEnded);
