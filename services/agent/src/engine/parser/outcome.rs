//! What is read of a model's reply, whole and while it grows.

use serde_json::{Map, Value};

use crate::engine::bounds::MAX_CALLS;

/// What the model decided.
#[derive(Debug, Clone, PartialEq)]
pub enum Choice {
    /// To use a tool.
    Action {
        /// Name as written, without quotes.
        name: String,
        /// Arguments; empty if none were given.
        arguments: Map<String, Value>,
    },
    /// To use several tools side by side, by name with their arguments: two at least.
    Actions(Vec<(String, Map<String, Value>)>),
    /// To answer.
    Answer(String),
}

/// A whole reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The thought, trimmed; may be empty.
    pub thought: String,
    /// The decision, or why none can be read.
    pub choice: Result<Choice, ParseError>,
}

/// Why a reply cannot be read. Its text is shown to the model, so that it can do better.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// No label at all.
    #[error("the reply has neither an Action nor a Final Answer")]
    Unlabelled,
    /// A thought that leads nowhere.
    #[error("the Thought is not followed by an Action or a Final Answer")]
    OnlyThought,
    /// `Action:` and nothing.
    #[error("the Action names no tool")]
    NoName,
    /// Not a name.
    #[error("the name after Action is too long")]
    LongName,
    /// `Args:` and no object.
    #[error("Args is not a JSON object")]
    NoObject,
    /// The object never ends.
    #[error("the JSON object of Args is not complete")]
    Incomplete,
    /// Not JSON.
    #[error("the JSON object of Args cannot be read: {0}")]
    Json(String),
    /// `Actions:` and no array.
    #[error("Actions is not a JSON array of objects with a name and arguments")]
    NoArray,
    /// The array never ends.
    #[error("the JSON array of Actions is not complete")]
    IncompleteArray,
    /// It has nothing in it.
    #[error("Actions names no tool")]
    NoCall,
    /// It has too much in it.
    #[error("Actions has more than {MAX_CALLS} calls")]
    ManyCalls,
    /// `Final Answer:` and nothing.
    #[error("the Final Answer is empty")]
    NoAnswer,
    /// More than `limits::AGENT_REPLY` bytes.
    #[error("the reply is too long")]
    TooLong,
}

/// Text that became certain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// More of the thought.
    pub thought: String,
    /// The thought is over with this.
    pub thought_ended: bool,
    /// More of the answer.
    pub answer: String,
}

impl Progress {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.thought.is_empty() && !self.thought_ended && self.answer.is_empty()
    }
}
