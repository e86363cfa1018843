//! What a run heard of the outside, as it is kept to be replayed: what models, tools and hooks were asked and answered, the
//! configuration that it went by, and in which order its subagents were passed on. All else of a run follows from these.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tg_provenance::text_hash;
use tg_schemas::Error;
use tg_schemas::msg::{AgentRun, Citation, LoopRecord, ToolHookResponse};

use super::decision::{Explained, Usage};
use super::prompt::Terms;

/// Rows of configuration by type and key.
pub type Rows = BTreeMap<String, BTreeMap<String, String>>;

/// One thing of a run's record. In a step they stand in the order in which they came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Entry {
    /// The run began.
    Run(Box<Beginning>),
    /// Rows that steps go by; steps name them by their hash.
    Rows(Rows),
    /// A step was begun, or taken up again by another process.
    Step(Surroundings),
    /// A model is asked.
    Asked(Asked),
    /// Pieces of its reply that were there together.
    Heard(Vec<Heard>),
    /// Its reply is over.
    Replied(Replied),
    /// A poll was about to be made, at this time: UTC, in milliseconds.
    Poll(u64),
    /// A tool was used.
    Tool(ToolUse),
    /// A hook decided.
    Hook(Hooked),
    /// Parts of subagents are passed on: kind and name of each.
    Passed(Vec<(String, String)>),
    /// One of these of a later one of several calls, by its number from 1 on.
    Nth(u32, Box<Self>),
}

impl Entry {
    /// Of a call by its number; that of the first, or only one, is as it is.
    #[must_use]
    pub fn of_call(self, nth: u32) -> Self {
        match nth {
            0 => self,
            nth => Self::Nth(nth, Box::new(self)),
        }
    }
}

/// A piece of a model's reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Heard {
    /// Of its text.
    Text(String),
    /// Of what it thinks before: shown, and never read.
    Thinking {
        /// The thought.
        thinking: String,
    },
}

impl Heard {
    /// The piece of the text, if it is one.
    pub fn text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            Self::Thinking { .. } => None,
        }
    }
}

/// The run before its first step, and what it ran with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Beginning {
    /// The run.
    pub run: AgentRun,
    /// It goes on without its asker.
    pub detach: bool,
    /// Settings of the agent.
    pub options: Value,
}

/// What a step found around itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    /// Hash of the rows.
    pub rows: String,
    /// The flow has a library.
    pub library: bool,
    /// The flow has a hook of tools.
    pub hook: bool,
}

/// What a model is asked: the prompt, and the hash of each of its variables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Name of the prompt.
    pub prompt: String,
    /// By the variable's name.
    pub terms: BTreeMap<String, String>,
}

impl Asked {
    /// With hashes of these.
    pub fn of(prompt: &str, terms: &Terms) -> Self {
        let hashed = terms.iter();
        let hashed = hashed.map(|(name, text)| (name.clone(), text_hash(text)));
        Self {
            prompt: prompt.to_owned(),
            terms: hashed.collect(),
        }
    }

    /// What differs from what was recorded, for people; `None`: nothing.
    pub fn differs(&self, recorded: &Self) -> Option<String> {
        if self.prompt != recorded.prompt {
            let (now, then) = (&self.prompt, &recorded.prompt);
            return Some(format!(
                "the model is asked by the prompt '{now}', recorded is '{then}'"
            ));
        }
        let names = self.terms.keys().chain(recorded.terms.keys());
        let mut other: Vec<&str> = names
            .filter(|name| self.terms.get(*name) != recorded.terms.get(*name))
            .map(String::as_str)
            .collect();
        other.sort_unstable();
        other.dedup();
        if other.is_empty() {
            return None;
        }
        Some(format!(
            "what the prompt '{}' is told is not what was recorded: {}",
            self.prompt,
            other.join(", ")
        ))
    }
}

/// How a model's reply ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Replied {
    /// What it took.
    pub usage: Usage,
    /// It is not what the prompt is made for.
    pub unusable: bool,
    /// It failed.
    pub error: Option<Error>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The tool.
    pub name: String,
    /// What it was given.
    pub arguments: Map<String, Value>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It returned.
    Returned(Returned),
    /// It failed.
    Failed(Error),
    /// It failed after it had asked models, which took this.
    Lost(Error, Usage),
    /// A process died over it: whether it took effect nobody knows.
    Unknown,
}

/// What a tool returned.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Returned {
    /// Text for the model.
    pub text: String,
    /// What the tool's own model calls took.
    pub usage: Usage,
    /// The trace that the tool itself left.
    pub trace: Vec<Explained>,
    /// What numbers in the text name that the run did not know.
    pub citations: Vec<Citation>,
    /// Of an agent that is come back to: the last calls that it had made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub window: Vec<LoopRecord>,
}

/// What a hook decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hooked {
    /// `before` or `after` the call.
    pub when: String,
    /// Its decision.
    pub decided: Decided,
}

/// What a hook has decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decided {
    /// As it is.
    Allow,
    /// Not at all, and why.
    Deny(String),
    /// Something else.
    Replace(ToolHookResponse),
}

/// The hash by which steps name rows.
pub fn rows_hash(rows: &Rows) -> String {
    text_hash(&serde_json::to_string(rows).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(pairs: &[(&str, &str)]) -> Terms {
        let pairs = pairs.iter();
        pairs
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect()
    }

    #[test]
    fn what_differs_is_named() {
        let then = Asked::of("p", &terms(&[("a", "1"), ("b", "2"), ("c", "3")]));
        assert_eq!(then.differs(&then.clone()), None);
        let now = Asked::of("p", &terms(&[("a", "1"), ("b", "9"), ("d", "4")]));
        let told = now.differs(&then).unwrap();
        assert!(told.ends_with("recorded: b, c, d"), "{told}");
        let other = Asked::of("q", &terms(&[]));
        let told = other.differs(&then).unwrap();
        assert!(told.contains("'q'") && told.contains("'p'"), "{told}");
        assert!(!serde_json::to_string(&then).unwrap().contains("\"1\""));
    }
}
