//! A call of a tool, of whatever kind: what it is given and what comes of it.

use serde_json::{Map, Value};
use tg_clients::rendering::ReadyPrompts;
use tg_mesh::Cx;
use tg_schemas::Error;
use tg_schemas::msg::Citation;

use crate::engine::decision::{Explained, Usage};
use crate::engine::exchange::Returned;

/// Arguments of a call.
pub type Arguments = Map<String, Value>;

/// A call of a tool.
#[derive(Clone)]
pub struct Call<'a> {
    /// Context of the step, with the call's own deadline.
    pub cx: &'a Cx,
    /// Collection to read.
    pub collection: &'a str,
    /// The only collections that tools may look into which are given the name of one. Empty: they look into that one, and passages
    /// may be of any where that is the default one.
    pub collections: &'a [String],
    /// Names the call; the same when it is made again.
    pub key: String,
    /// IRI of the decision that led here.
    pub iteration: String,
    /// Passages that a search returns where the model does not say how many; 0: as the tool says.
    pub passages: i64,
    /// Depth that a question of the tool to an agent has; 0: nobody counts.
    pub caller_depth: i64,
    /// What numbers of the run name already.
    pub known: &'a [Citation],
    /// Prompts that are rendered here.
    pub prompts: &'a ReadyPrompts,
}

/// What a tool returned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// Text for the model.
    pub text: String,
    /// What the tool's own model calls took.
    pub usage: Usage,
    /// The trace that the tool itself left, in order.
    pub trace: Vec<Explained>,
    /// What numbers in the text name that the run did not know.
    pub citations: Vec<Citation>,
    /// It failed after models were asked: all there is beside this is what they took.
    pub failed: Option<Error>,
}

impl From<String> for Output {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

impl From<Output> for Returned {
    fn from(output: Output) -> Self {
        let Output {
            text,
            usage,
            trace,
            citations,
            failed: _,
        } = output;
        Self {
            text,
            usage,
            trace,
            citations,
            window: Vec::new(),
        }
    }
}

impl From<Returned> for Output {
    fn from(returned: Returned) -> Self {
        let Returned {
            text,
            usage,
            trace,
            citations,
            // Of agents alone, and no tool is one.
            window: _,
        } = returned;
        Self {
            text,
            usage,
            trace,
            citations,
            failed: None,
        }
    }
}

/// A text argument; empty if it was left out.
pub(crate) fn text<'a>(arguments: &'a Arguments, name: &str) -> &'a str {
    arguments
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or("")
        .trim()
}

/// How much is asked for, within bounds.
pub(super) fn limit(arguments: &Arguments, usual: usize, most: usize) -> usize {
    count(arguments, "limit", usual, most)
}

/// The same under another name.
pub(super) fn count(arguments: &Arguments, name: &str, usual: usize, most: usize) -> usize {
    let given = arguments.get(name).and_then(Value::as_u64);
    let given = given.and_then(|limit| usize::try_from(limit).ok());
    given.unwrap_or(usual).clamp(1, most)
}
