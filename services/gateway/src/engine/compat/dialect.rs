//! What an API makes of an answer: one text, or events. The handler knows no more of an API than this.

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use tg_schemas::Error;

use super::errors::CompatError;
use super::responses::kept::{Kept, Wish};
use crate::engine::event;
use crate::engine::translate::Body;

/// A request that was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asked {
    /// The body of `chat-completion`.
    pub(crate) body: Body,
    /// The model.
    pub(crate) model: String,
    /// In pieces.
    pub(crate) streaming: bool,
}

/// What all pieces of an answer have in common.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Head {
    /// What no other answer has: hexadecimal digits, or where it is kept. Each API writes its own prefix before them.
    pub(crate) id: String,
    /// Seconds since 1970.
    pub(crate) created: i64,
    /// The model that was asked for.
    pub(crate) model: String,
}

impl Head {
    /// The model that answered, else the one that was asked for.
    pub(crate) fn model<'a>(&'a self, body: &'a Body) -> &'a str {
        let told = body.get("model").and_then(Value::as_str);
        told.filter(|model| !model.is_empty())
            .unwrap_or(&self.model)
    }
}

/// The words of an API. One value answers one request.
pub(crate) trait Dialect: Sized + Send + 'static {
    /// What stands behind the last event.
    const END: &'static [u8] = b"";

    /// Reads a request. Fields that the API does not know mean nothing.
    ///
    /// # Errors
    /// `bad-request`, with the field that is missing or wrong, or that asks for what is not done here.
    fn read(body: &Body) -> Result<(Asked, Self), Error>;

    /// What the request asks of the place of its answer; `None`: the API keeps none.
    fn wish(&self) -> Option<&Wish> {
        None
    }

    /// The answer is kept there.
    fn keep(&mut self, _place: Kept) {}

    /// A failure before the first event.
    fn failure(fault: &CompatError, request_id: &str) -> Value;

    /// A whole answer, from its last part.
    fn whole(&self, head: &Head, body: &Body) -> Value;

    /// The events that a part of an answer is; `last` where it is the last.
    fn events(&mut self, head: &Head, body: &Body, last: bool) -> Vec<Bytes>;

    /// The events that end an answer which fails after its first event.
    fn broken(&mut self, head: &Head, fault: &CompatError, request_id: &str) -> Vec<Bytes>;
}

/// An event without a name.
pub(crate) fn data(event: &impl Serialize) -> Bytes {
    event::event(&[], event)
}

/// An event that is named after its `type`.
pub(crate) fn named(event: &Value) -> Bytes {
    let name = event["type"].as_str().unwrap_or("error");
    event::event(&["event: ", name, "\n"], event)
}

/// A text of a part, if it says anything.
pub(crate) fn said<'a>(body: &'a Body, key: &str) -> Option<&'a str> {
    let text = body.get(key).and_then(Value::as_str);
    text.filter(|text| !text.is_empty())
}

/// The tools that a part calls.
pub(crate) fn calls(body: &Body) -> &[Value] {
    let calls = body.get("tool_calls").and_then(Value::as_array);
    calls.map_or(&[], Vec::as_slice)
}

/// Why an answer ended, in the words of `chat-completion`.
pub(crate) fn reason(body: &Body) -> &str {
    said(body, "finish_reason").unwrap_or("stop")
}
