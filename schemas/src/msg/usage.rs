//! What runs of the agent used, and calls of models that no run made, as the ledger of the agent counts it.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;
use crate::error::Error;

/// A call of a model that no run of the agent makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct UsageCall {
    /// Names it in its workspace: the ledger reserves and counts it once.
    #[serde(deserialize_with = "nullable")]
    pub id: String,
    /// The key or user whose call it is, as `list-usage` by `key` names them; empty: nobody who is known.
    #[serde(deserialize_with = "nullable")]
    pub key: String,
    /// What it is made for: `direct` or `documents`.
    #[serde(deserialize_with = "nullable")]
    pub of: String,
    /// The model that answered, or is likely to; empty: not known.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
    /// Tokens that went in, or are likely to.
    #[serde(deserialize_with = "nullable")]
    pub in_token: i64,
    /// Tokens that came out, or are likely to.
    #[serde(deserialize_with = "nullable")]
    pub out_token: i64,
    /// Of those that went in, what the provider had kept.
    #[serde(deserialize_with = "nullable")]
    pub cache_read: i64,
    /// Tokens that the provider keeps since then.
    #[serde(deserialize_with = "nullable")]
    pub cache_write: i64,
    /// Billionths of a dollar that the provider said it cost; `None`: the price of the model says.
    pub nanodollars: Option<i64>,
    /// Milliseconds that it took.
    #[serde(deserialize_with = "nullable")]
    pub duration_ms: i64,
    /// `reserve-call`: when the call is over at the latest, in milliseconds since the epoch.
    #[serde(deserialize_with = "nullable")]
    pub expires_ms: i64,
}

message!(UsageCall);

/// A question about what was used in a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct UsageRequest {
    /// `list-usage` or `clear-usage`; of services `reserve-call` or `settle-call`.
    #[serde(deserialize_with = "nullable")]
    pub operation: String,
    /// What it is summed up by: `run`, `tool`, `model`, `workspace`, `key`, `session`, `agent` or `day`. Empty: `workspace`.
    #[serde(deserialize_with = "nullable")]
    pub by: String,
    /// The first day in UTC, `YYYY-MM-DD`; empty: all that is known.
    #[serde(deserialize_with = "nullable")]
    pub since: String,
    /// The last day; empty: today.
    #[serde(deserialize_with = "nullable")]
    pub until: String,
    /// Longest page; 0: all of it.
    #[serde(deserialize_with = "nullable")]
    pub limit: i64,
    /// Where the page begins, as `next` of the one before says.
    #[serde(deserialize_with = "nullable")]
    pub after: String,
    /// `clear-usage`: the session that is counted anew.
    #[serde(deserialize_with = "nullable")]
    pub session: String,
    /// `clear-usage`: the agent that is counted anew, instead of a session.
    #[serde(deserialize_with = "nullable")]
    pub agent: String,
    /// `reserve-call`: the one call that is about to be made; `settle-call`: those that were made.
    #[serde(deserialize_with = "nullable")]
    pub calls: Vec<UsageCall>,
}

message!(UsageRequest);

/// What one of them used on these days.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct UsageTotal {
    /// Id of the run, name of the tool or model, key, session, agent, or day.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Calls of models.
    #[serde(deserialize_with = "nullable")]
    pub model_calls: i64,
    /// Calls of tools.
    #[serde(deserialize_with = "nullable")]
    pub tool_calls: i64,
    /// Tokens that went in.
    #[serde(deserialize_with = "nullable")]
    pub in_token: i64,
    /// Tokens that came out.
    #[serde(deserialize_with = "nullable")]
    pub out_token: i64,
    /// Of those that went in, what providers had kept.
    #[serde(deserialize_with = "nullable")]
    pub cache_read: i64,
    /// Dollars, as providers said, else by the prices of the models when they were asked.
    #[serde(deserialize_with = "nullable")]
    pub dollars: f64,
    /// Milliseconds that the calls took together.
    #[serde(deserialize_with = "nullable")]
    pub duration_ms: i64,
    /// Tokens that providers keep since then.
    #[serde(deserialize_with = "nullable")]
    pub cache_write: i64,
    /// Tokens that went in and came out.
    #[serde(deserialize_with = "nullable")]
    pub total: i64,
}

message!(UsageTotal);

/// What the agent says of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct UsageResponse {
    /// Why it says nothing.
    pub error: Option<Error>,
    /// In the order of their names.
    #[serde(deserialize_with = "nullable")]
    pub usage: Vec<UsageTotal>,
    /// `after` of the next page; empty: there is none.
    #[serde(deserialize_with = "nullable")]
    pub next: String,
    /// Of calls: a budget of keys or of the workspace is set, so that calls have to be reserved.
    #[serde(deserialize_with = "nullable")]
    pub bound: bool,
    /// `reserve-call`: why the call must not be made; empty: it may.
    #[serde(deserialize_with = "nullable")]
    pub refused: String,
    /// Seconds after which a call that was refused may fit.
    #[serde(deserialize_with = "nullable")]
    pub retry_after: i64,
}

message!(UsageResponse);
