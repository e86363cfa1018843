//! A piece of work under way. It ends when it is dropped.

use std::sync::Arc;

use crate::context::{Context, span_id};
use crate::finished::{ATTRIBUTES, Finished, SpanKind, Value, cut};
use crate::queue::Queue;

/// What spans of one tracer share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) queue: Queue,
    /// Nanoseconds since 1970.
    pub(crate) clock: fn() -> u64,
    /// Of 2^56 traces so many are recorded.
    pub(crate) share: u64,
    pub(crate) to_providers: bool,
}

/// See the module. One of a trace that is not recorded, or of a tracer that is off, holds nothing.
#[derive(Debug, Default)]
pub struct Span(Option<Box<Open>>);

#[derive(Debug)]
struct Open {
    of: Finished,
    shared: Arc<Shared>,
}

impl Span {
    /// Nothing is recorded.
    pub fn none() -> Self {
        Self(None)
    }

    pub(crate) fn start(
        shared: &Arc<Shared>,
        (parent, is_root): (Context, bool),
        kind: SpanKind,
        name: &str,
    ) -> Self {
        let began = (shared.clock)();
        Self(Some(Box::new(Open {
            of: Finished {
                context: Context {
                    span: span_id(),
                    sampled: true,
                    ..parent
                },
                parent: (!is_root).then_some(parent.span),
                name: cut(name),
                kind,
                began,
                ended: began,
                attributes: Vec::new(),
                failed: None,
            },
            shared: shared.clone(),
        })))
    }

    /// Whether it is recorded.
    pub fn is_recorded(&self) -> bool {
        self.0.is_some()
    }

    /// The header by which others belong to it.
    pub fn traceparent(&self) -> Option<String> {
        self.0.as_ref().map(|open| open.of.context.to_string())
    }

    /// Whoever receives this header from now on belongs to the span.
    pub fn lead(&self, traceparent: &mut Option<String>) {
        if let Some(open) = &self.0 {
            *traceparent = Some(open.of.context.to_string());
        }
    }

    /// Says a name or an id, its beginning if it is long; an empty one says nothing.
    pub fn say(&mut self, what: &'static str, text: &str) {
        if !text.is_empty() && self.0.is_some() {
            self.set(what, Value::Text(cut(text)));
        }
    }

    /// Says a number.
    pub fn count(&mut self, what: &'static str, number: i64) {
        self.set(what, Value::Number(number));
    }

    /// It is a failure of this kind.
    pub fn fail(&mut self, kind: &'static str) {
        if let Some(open) = &mut self.0 {
            open.of.failed = Some(kind);
        }
    }

    /// It is not a failure after all.
    pub fn well(&mut self) {
        if let Some(open) = &mut self.0 {
            open.of.failed = None;
        }
    }

    /// It is over before it is dropped.
    pub fn end(&mut self) {
        if let Some(open) = self.0.take() {
            open.end();
        }
    }

    pub(crate) fn context(&self) -> Option<Context> {
        self.0.as_ref().map(|open| open.of.context)
    }

    fn set(&mut self, what: &'static str, value: Value) {
        let Some(open) = &mut self.0 else { return };
        let all = &mut open.of.attributes;
        if let Some((_, known)) = all.iter_mut().find(|(known, _)| *known == what) {
            *known = value;
        } else if all.len() < ATTRIBUTES {
            all.push((what, value));
        }
    }
}

impl Open {
    fn end(self) {
        let mut of = self.of;
        // The clock may have been put back.
        of.ended = (self.shared.clock)().max(of.began);
        self.shared.queue.put(of);
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        self.end();
    }
}
