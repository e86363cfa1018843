//! The array behind `Actions:`, and calls of tools that are written without a label.

use serde_json::{Map, Value};
use tg_replies::calls as read_text;

use super::name::{MAX_NAME, clean_name, is_answer};
use crate::engine::bounds::MAX_CALLS;

/// Why an array is none of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Misread {
    NoArray,
    NoCall,
    Many,
    NoName,
    LongName,
}

/// Marks that models put before calls.
const MARKS: [&str; 4] = [
    "<tool_call>",
    "[TOOL_CALLS]",
    "<|python_tag|>",
    "<function=",
];

/// Calls without a label.
pub(super) struct Written<'a> {
    /// What stands before them, where it is not known as thought already.
    pub(super) thought: &'a str,
    /// What they say, or what is wrong with them.
    pub(super) called: Result<Called, Misread>,
}

/// What calls say.
pub(super) enum Called {
    /// Tools are called.
    Tools(Vec<Call>),
    /// The answer is written as a call.
    Answer(String),
}

/// A name with arguments.
pub(super) type Call = (String, Map<String, Value>);

/// The calls of an array, or the one of an object, each with what it is given.
pub(super) fn read_calls(text: &str) -> Result<Called, Misread> {
    let items = match text.starts_with('{') {
        true => tg_replies::object(text).map(|map| vec![Value::Object(map)]),
        false => tg_replies::array(text),
    };
    let items = items.map_err(|_| Misread::NoArray)?.into_iter();
    let calls: Option<Vec<_>> = items.map(tg_replies::Call::of).collect();
    checked(calls.ok_or(Misread::NoArray)?)
}

fn checked(calls: Vec<tg_replies::Call>) -> Result<Called, Misread> {
    match calls.len() {
        0 => return Err(Misread::NoCall),
        count if count > MAX_CALLS => return Err(Misread::Many),
        _ => {}
    }
    if let [only] = &calls[..]
        && is_answer(&only.name)
        && let Some(Value::String(answer)) = &only.arguments
    {
        return Ok(Called::Answer(answer.clone()));
    }
    let call = |call: tg_replies::Call| match clean_name(&call.name) {
        "" => Err(Misread::NoName),
        name if name.len() > MAX_NAME => Err(Misread::LongName),
        name => {
            let name = name.to_owned();
            Ok((name, call.object().ok_or(Misread::NoArray)?))
        }
    };
    let calls: Result<_, _> = calls.into_iter().map(call).collect();
    calls.map(Called::Tools)
}

/// The calls that a text without a label ends with. Behind a thought they have a mark; elsewhere the text is nothing else, and
/// each says what the tool is given: JSON that is an answer has names as well.
pub(super) fn written(text: &str, is_thought: bool) -> Option<Written<'_>> {
    let marked = MARKS.iter().filter_map(|mark| text.find(mark)).min();
    let at = match marked {
        None if is_thought => return None,
        marked => marked.unwrap_or(0),
    };
    let calls = read_text(&text[at..])?;
    if marked.is_none() && calls.iter().any(|call| call.arguments.is_none()) {
        return None;
    }
    Some(Written {
        thought: if is_thought { "" } else { &text[..at] },
        called: checked(calls),
    })
}
