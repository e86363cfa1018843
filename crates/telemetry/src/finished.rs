//! A span that is over: a piece of work with its name, its times and a few attributes.

use crate::context::Context;

/// Most bytes of a text in a span.
pub(crate) const TEXT: usize = 256;
/// Most attributes of a span.
pub(crate) const ATTRIBUTES: usize = 16;

/// What a span is to the one that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// A part of what its process does.
    Internal,
    /// A request that came in from outside.
    Server,
    /// A question that is waited for.
    Client,
    /// A message for others to work on.
    Producer,
    /// Work on a message.
    Consumer,
}

/// What an attribute says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A name or an id.
    Text(String),
    /// A count.
    Number(i64),
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Its place.
    pub context: Context,
    /// The span of its trace that it belongs to; `None`: the trace begins with it.
    pub parent: Option<[u8; 8]>,
    /// What was done, of a small set of names.
    pub name: String,
    /// What it is to its parent.
    pub kind: SpanKind,
    /// When it began, in nanoseconds since 1970.
    pub began: u64,
    /// When it ended.
    pub ended: u64,
    /// What else is known.
    pub attributes: Vec<(&'static str, Value)>,
    /// What kind of failure it ended with.
    pub failed: Option<&'static str>,
}

impl Finished {
    /// Memory that it takes while it waits.
    pub(crate) fn bytes(&self) -> usize {
        let text = |value: &Value| match value {
            Value::Text(text) => text.capacity(),
            Value::Number(_) => 0,
        };
        let attribute = size_of::<(&'static str, Value)>();
        let texts: usize = self.attributes.iter().map(|(_, value)| text(value)).sum();
        size_of::<Self>() + self.name.capacity() + self.attributes.capacity() * attribute + texts
    }
}

/// The beginning of a text, as much of it as a span holds.
pub(crate) fn cut(text: &str) -> String {
    let mut end = text.len().min(TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
