//! The array behind `Actions:`.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::name::{MAX_NAME, clean_name};
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

/// A call as models write it.
#[derive(Deserialize)]
struct Written {
    #[serde(alias = "action", alias = "tool")]
    name: String,
    #[serde(default, alias = "args", alias = "parameters")]
    arguments: Option<Map<String, Value>>,
}

/// A name with arguments.
pub(super) type Call = (String, Map<String, Value>);

/// The calls of an array, each with what it is given.
pub(super) fn read_calls(text: &str) -> Result<Vec<Call>, Misread> {
    let written: Vec<Written> =
        serde_json::from_slice(text.as_bytes()).map_err(|_| Misread::NoArray)?;
    match written.len() {
        0 => return Err(Misread::NoCall),
        count if count > MAX_CALLS => return Err(Misread::Many),
        _ => {}
    }
    written
        .into_iter()
        .map(|call| match clean_name(&call.name) {
            "" => Err(Misread::NoName),
            name if name.len() > MAX_NAME => Err(Misread::LongName),
            name => Ok((name.to_owned(), call.arguments.unwrap_or_default())),
        })
        .collect()
}
