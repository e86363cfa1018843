//! A line of the trail of turns. Pure.

use serde::Serialize;

/// A turn, or a call of a model that was made for one. Nothing of what was said is in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Line {
    /// `agent.turn` or `llm.call`.
    pub event: String,
    /// Id of the request as its client knows it; of a call an id of its own.
    pub request_id: String,
    /// Id of the request that no client chose.
    pub id: String,
    /// The request that caused it.
    pub parent_request_id: Option<String>,
    /// How many agents called each other before it.
    pub caller_depth: i64,
    /// The workspace.
    pub workspace: String,
    /// Who holds the credential that the request came with.
    pub principal: Option<String>,
    /// Id of the key that the credential is; never the key.
    pub token_id: Option<String>,
    /// The user whose session it is.
    pub user_id: Option<String>,
    /// Where it was asked: `a1`, `ws` (conversations), `delegate`, `compaction` or `memory`.
    pub surface: String,
    /// The agent.
    pub agent: String,
    /// The session; `None`: a question outside of any.
    pub session_id: Option<String>,
    /// The model; `None`: not known.
    pub model: Option<String>,
    /// Of a call: the backend that answered; `None`: not known, or there is one only.
    pub backend: Option<String>,
    /// Of a call: how often a backend was asked for it; `None`: not known.
    pub attempts: Option<i64>,
    /// Of a turn: whether its client reads events.
    pub stream: Option<bool>,
    /// `ok`, `error` or `cancelled`.
    pub status: String,
    /// Why it did not succeed, as a code.
    pub error_code: Option<String>,
    /// Of a turn: calls of models.
    pub sub_calls: Option<i64>,
    /// Tokens that models read.
    pub input_tokens: i64,
    /// Tokens that they wrote.
    pub output_tokens: i64,
    /// Of those that they read, what providers had kept.
    pub cache_read: i64,
    /// Tokens that providers keep since then.
    pub cache_write: i64,
    /// All of them.
    pub total_tokens: i64,
    /// Of a call: whether what the model wrote is guessed; `None`: not known.
    pub usage_estimated: Option<bool>,
    /// Euros; `None`: not known, or no rate is set.
    pub cost_eur: Option<f64>,
    /// Dollars; `None`: not known.
    pub cost_usd: Option<f64>,
    /// How the cost is known: `upstream`, `table`, `local`, `unknown` or `mixed`.
    pub cost_source: Option<String>,
    /// Milliseconds that it took; `None`: not known.
    pub duration_ms: Option<i64>,
}
