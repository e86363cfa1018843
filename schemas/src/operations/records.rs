//! The records that operations on agents and sessions answer with.

use serde::{Deserialize, Serialize};

/// Nothing: an empty object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Empty {}

/// What happens in a turn, as an event: an object that is like its name says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct TurnEvent(pub serde_json::Map<String, serde_json::Value>);

/// An agent in a listing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AgentSummary {
    /// Its name.
    pub name: String,
    /// The model that it asks for.
    pub model: String,
    /// What it is for.
    pub description: String,
    /// Names of the tools that it may use.
    pub tools: Vec<String>,
    /// Collection that it reads before each answer; `null`: none.
    pub rag_index: Option<String>,
}

/// What an agent can do, for others that choose among agents.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Capability {
    /// Its name.
    pub name: String,
    /// Words that describe it.
    pub tags: Vec<String>,
    /// How well it does it: more than 0, at most 1.
    pub strength: f64,
}

/// An agent as its file describes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct AgentConfig {
    /// Its name.
    pub name: String,
    /// The model that it asks for.
    pub model: String,
    /// What it is for.
    pub description: String,
    /// Names of the tools that it may use.
    pub tools: Vec<String>,
    /// Collection that it reads before each answer; `null`: none.
    pub rag_index: Option<String>,
    /// The system prompt.
    pub system_prompt: String,
    /// Most tokens of an answer; `null`: as many as the model writes.
    pub max_tokens: Option<i64>,
    /// Sampling temperature; `null`: that of the flow.
    pub temperature: Option<f64>,
    /// Passages that a search returns.
    pub rag_top_k: i64,
    /// What it can do.
    pub capabilities: Vec<Capability>,
    /// `router`, `cli` or `cli-stream`: who answers.
    pub engine: String,
}

/// When a session is shortened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CompactStrategy {
    /// By itself, when it fills its model.
    #[default]
    Auto,
    /// When somebody asks for it.
    Manual,
    /// Never.
    Off,
}

/// A session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Session {
    /// Its id.
    pub id: String,
    /// The agent that answers in it.
    pub agent: String,
    /// The user whose session it is.
    pub user_id: String,
    /// Its title.
    pub title: Option<String>,
    /// The model that its agent asks for.
    pub model: String,
    /// Messages in it.
    pub message_count: i64,
    /// Messages in it that no summary replaces.
    pub live_message_count: i64,
    /// When it is shortened.
    pub compact_strategy: CompactStrategy,
    /// Messages that stay as they are when it is shortened.
    pub compact_keep_last_n: i64,
    /// Whether a summary leaves out what tools returned.
    pub compact_observation_mask: bool,
    /// The session that it continues; `null`: none.
    pub parent_session_id: Option<String>,
    /// The session that continues it; `null`: none.
    pub successor_session_id: Option<String>,
    /// When it was created.
    pub created_at: String,
    /// When it changed last.
    pub updated_at: String,
    /// When it was archived; `null`: it was not.
    pub archived_at: Option<String>,
}

/// A call of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ToolCall {
    /// Its id, which its result names.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments: a JSON object in text.
    pub arguments: String,
}

/// Tokens that models read and wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct Usage {
    /// Tokens that they read.
    pub input: i64,
    /// Tokens that they wrote.
    pub output: i64,
    /// Of those that they read, what their provider had kept.
    pub cache_read: i64,
    /// Tokens that their provider keeps from now on.
    pub cache_write: i64,
    /// All of them.
    pub total: i64,
}

/// A message of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SessionMessage {
    /// Its id.
    pub id: String,
    /// `user`, `assistant`, `system` or `tool`.
    pub role: String,
    /// The text.
    pub content: Option<String>,
    /// When it was written.
    pub created_at: String,
    /// When a summary replaced it; `null`: none did.
    pub compacted_at: Option<String>,
    /// Whether nobody said it: a summary or an announcement.
    pub synthetic: bool,
    /// The tool that returned it; `null`: none.
    pub tool_name: Option<String>,
    /// The tools that it calls; `null`: none.
    pub tool_calls: Option<Vec<ToolCall>>,
    /// What it used; `null`: nothing, or nobody knows.
    pub usage: Option<Usage>,
}

/// What a request cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Cost {
    /// Euros; `null`: nobody knows, or no rate is set.
    pub eur: Option<f64>,
    /// Dollars; `null`: nobody knows.
    pub usd: Option<f64>,
    /// `upstream`, `table`, `local`, `unknown` or `mixed`: who says so.
    pub source: String,
    /// Calls of models.
    pub sub_calls: i64,
}

impl Cost {
    /// The headers that say what it cost; none where no model was asked.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        if self.sub_calls > 0 {
            for (name, amount) in [("spass-cost-eur", self.eur), ("spass-cost-usd", self.usd)] {
                headers.extend(amount.map(|amount| (name, decimal(amount))));
            }
            headers.push(("spass-cost-source", self.source.clone()));
            headers.push(("spass-cost-sub-calls", self.sub_calls.to_string()));
        }
        headers
    }
}

/// What became of a session that was shortened on the way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Compacted {
    /// The session that was shortened.
    pub from: String,
    /// The session that continues it.
    pub to: String,
    /// Tokens that the first one held.
    pub tokens: i64,
}

/// What an agent answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TurnResult {
    /// Id of the request.
    pub request_id: String,
    /// The agent.
    pub agent: String,
    /// The session in which the turn was stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The model that answered.
    pub model: String,
    /// The answer.
    pub content: String,
    /// Why it ended: `stop`, `length`, `error`, `loop`, `budget` or `max_iterations`.
    pub finish_reason: String,
    /// Whether it was stopped: the answer is the best that there was.
    pub stopped: bool,
    /// Calls of tools.
    pub tool_calls: i64,
    /// Tokens that models read and wrote.
    pub usage: Usage,
    /// What it cost.
    pub cost: Cost,
    /// Set where the session was shortened on the way.
    pub compacted: Option<Compacted>,
    /// IRI of the trace that explains the answer, in the flow's graph.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub explain_session: String,
    /// Why the agent did not finish, where it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// The passages that the agent was given, each as chunk, collection and document; an empty one is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context_chunks: Vec<Vec<String>>,
}

impl TurnResult {
    /// The headers that say what it cost, and how its session was shortened.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = self.cost.headers();
        if let Some(compacted) = &self.compacted {
            headers.push(("spass-session-compacted", compacted.to.clone()));
            headers.push((
                "spass-session-compacted-tokens",
                compacted.tokens.to_string(),
            ));
        }
        headers
    }
}

/// A plain decimal: at most six digits after the point, half to even, without zeros at the end.
pub fn decimal(amount: f64) -> String {
    let millionths = (amount * 1e6).round_ties_even();
    let text = format!("{:.6}", millionths / 1e6);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_asked_no_model_has_no_cost_headers() {
        let mut turn = TurnResult::default();
        assert!(turn.headers().is_empty());
        turn.cost = Cost {
            usd: Some(0.012_500_4),
            source: "table".to_owned(),
            sub_calls: 3,
            ..Cost::default()
        };
        let told = turn.headers();
        assert_eq!(told[0], ("spass-cost-usd", "0.0125".to_owned()));
        assert_eq!(told[2], ("spass-cost-sub-calls", "3".to_owned()));
        assert_eq!(decimal(0.0), "0");
    }
}
