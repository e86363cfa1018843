//! What a step decided, saw, or how it ended: the rows that are stored before anything follows from them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tg_provenance::Reason;
use tg_schemas::msg::Citation;
use tg_schemas::{Error, ErrorCode, Triple};

/// Name under which a reply that cannot be read appears as an action.
pub const PARSE_ERROR: &str = "__parse_error__";

/// What model calls took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input tokens, where the model told them.
    pub in_token: i64,
    /// Output tokens, where the model told them.
    pub out_token: i64,
    /// Model that answered last; empty if unknown.
    pub model: String,
    /// How long it took.
    pub duration_ms: u64,
}

impl Usage {
    /// Adds another call.
    pub fn add(&mut self, other: &Self) {
        self.in_token = self.in_token.saturating_add(other.in_token);
        self.out_token = self.out_token.saturating_add(other.out_token);
        self.duration_ms = self.duration_ms.saturating_add(other.duration_ms);
        if !other.model.is_empty() {
            self.model.clone_from(&other.model);
        }
    }
}

/// What the model chose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Taken {
    /// A tool.
    Action {
        /// Name as the model wrote it.
        name: String,
        /// Arguments as the model wrote them.
        arguments: Map<String, Value>,
    },
    /// To answer.
    Answer {
        /// The answer.
        text: String,
    },
    /// Nothing that can be read, also when asked again.
    Unreadable {
        /// Why, as the model is told.
        detail: String,
    },
}

/// A decided step, with its pieces as the asker got them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Pieces of the thought; the last one, which may be empty, ended it.
    pub thought: Vec<String>,
    /// Pieces of the answer that were sent before it was whole.
    pub answer: Vec<String>,
    /// The choice.
    pub taken: Taken,
    /// What it took.
    pub usage: Usage,
    /// Tools that could be chosen.
    pub candidates: Vec<String>,
    /// What the numbers of the answer name.
    #[serde(default)]
    pub citations: Vec<Citation>,
    /// The answer is that there is none.
    #[serde(default)]
    pub refused: bool,
}

impl Decision {
    /// The whole thought.
    pub fn thought_text(&self) -> String {
        self.thought.concat()
    }

    /// The tool as the trace and the next prompt name it, with its arguments as JSON text.
    pub fn action(&self) -> (&str, String) {
        match &self.taken {
            Taken::Action { name, arguments } => (name, json_text(arguments)),
            Taken::Answer { .. } => ("", "{}".to_owned()),
            Taken::Unreadable { .. } => (PARSE_ERROR, "{}".to_owned()),
        }
    }
}

fn json_text(arguments: &Map<String, Value>) -> String {
    serde_json::to_string(arguments).unwrap_or_else(|_| "{}".to_owned())
}

/// What a tool returned.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Observation {
    /// Text for the asker and the library.
    pub text: String,
    /// What the failure said, if it failed.
    pub error: Option<String>,
    /// State after the tool.
    pub state: String,
    /// How long it took.
    pub duration_ms: u64,
    /// What the tool's own model calls took.
    pub usage: Usage,
    /// The trace that the tool itself left, in order: what a later repeat passes on again.
    pub trace: Vec<Explained>,
    /// What numbers in the text name that no step before named.
    pub citations: Vec<Citation>,
}

/// An entry of a trace that somebody else keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Explained {
    /// What is described.
    pub id: String,
    /// Its triples.
    #[serde(with = "short")]
    pub triples: Vec<Triple>,
}

/// Triples in their short form: rows of the ledger hold many.
mod short {
    use serde::{Deserialize, Deserializer, Serializer};
    use serde_json::Value;
    use tg_schemas::Triple;

    pub(super) fn serialize<S: Serializer>(triples: &[Triple], ser: S) -> Result<S::Ok, S::Error> {
        ser.collect_seq(triples.iter().map(Triple::to_api))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(de: D) -> Result<Vec<Triple>, D::Error> {
        let values = Vec::<Value>::deserialize(de)?;
        Ok(values.iter().filter_map(Triple::from_api).collect())
    }
}

impl Observation {
    /// A failed call: the model sees it and may do better.
    pub fn failed(message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            text: format!("Error: {message}"),
            error: Some(message),
            ..Self::default()
        }
    }
}

/// How a run ended without an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// Word for the trace.
    pub reason: String,
    /// Wire type of the error.
    pub kind: String,
    /// Text for people.
    pub message: String,
    /// Number of the first part the asker lacks, where that is not what the run itself counted.
    #[serde(default)]
    pub seq: Option<u64>,
}

impl Ending {
    /// From an error of whoever was asked, or of the agent itself.
    pub fn from_error(error: &Error) -> Self {
        let reason = match error.code() {
            ErrorCode::Cancelled | ErrorCode::Timeout => Reason::Cancelled,
            ErrorCode::Interrupted => Reason::Interrupted,
            _ => Reason::Error,
        };
        Self::new(reason, error)
    }

    /// With a reason of its own.
    pub fn new(reason: Reason, error: &Error) -> Self {
        let kept = matches!(
            error.code(),
            ErrorCode::Cancelled
                | ErrorCode::Timeout
                | ErrorCode::Interrupted
                | ErrorCode::FlowStopped
                | ErrorCode::Busy
                | ErrorCode::RateLimited
                | ErrorCode::NobodyServes
                | ErrorCode::Unavailable
                | ErrorCode::Provider
        );
        Self {
            reason: reason.as_str().to_owned(),
            kind: if kept {
                error.kind.clone()
            } else {
                AGENT_ERROR.to_owned()
            },
            message: error.message.clone(),
            seq: None,
        }
    }

    /// The reason as the trace knows it.
    pub fn reason(&self) -> Reason {
        [
            Reason::MaxIterations,
            Reason::Cancelled,
            Reason::Interrupted,
            Reason::FinalAnswer,
        ]
        .into_iter()
        .find(|reason| reason.as_str() == self.reason)
        .unwrap_or(Reason::Error)
    }

    /// The error as the asker gets it.
    pub fn error(&self) -> Error {
        Error::typed(&self.kind, self.message.as_str())
    }
}

/// Wire type of the agent's own errors.
pub const AGENT_ERROR: &str = "agent-error";
