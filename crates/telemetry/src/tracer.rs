//! Who starts spans: decides which traces are recorded, and whether providers receive them.

use std::fmt;
use std::sync::Arc;

use crate::context::Context;
use crate::finished::SpanKind;
use crate::queue::{Queue, Spans};
use crate::span::{Shared, Span};

/// Numbers that a trace may have by chance.
const CHANCES: f64 = (1_u64 << 56) as f64;

/// What is recorded, and who receives it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Share of the traces that begin here which are recorded, from 0 to 1. Others are as who began them says.
    pub share: f64,
    /// Whether requests to providers carry the context of their span.
    pub to_providers: bool,
}

/// See the module. Off by default. Cheap to clone.
#[derive(Clone, Default)]
pub struct Tracer(Option<Arc<Shared>>);

impl Tracer {
    /// A tracer that is on, and where its spans come out. `clock` returns nanoseconds since 1970.
    pub fn new(sampling: Sampling, clock: fn() -> u64) -> (Self, Spans) {
        let (queue, spans) = Queue::new();
        let shared = Shared {
            queue,
            clock,
            share: (sampling.share.clamp(0.0, 1.0) * CHANCES) as u64,
            to_providers: sampling.to_providers,
        };
        (Self(Some(Arc::new(shared))), spans)
    }

    /// The first span of a trace that began here, by whose id it is decided whether it is recorded.
    pub fn root(&self, kind: SpanKind, trace: &str, name: impl FnOnce() -> String) -> Span {
        let Some(shared) = &self.0 else {
            return Span::none();
        };
        match Context::parse(trace).filter(|context| context.chance() < shared.share) {
            Some(context) => Span::start(shared, (context, true), kind, &name()),
            None => Span::none(),
        }
    }

    /// A span that belongs to another one, if that one is recorded.
    pub fn child(
        &self,
        kind: SpanKind,
        traceparent: Option<&str>,
        name: impl FnOnce() -> String,
    ) -> Span {
        self.place(traceparent).span(kind, name)
    }

    /// Where the work for a message belongs.
    pub fn place(&self, traceparent: Option<&str>) -> Place {
        let Some(shared) = &self.0 else {
            return Place::default();
        };
        let context = traceparent.and_then(Context::parse);
        Place(
            context
                .filter(Context::is_sampled)
                .map(|context| (context, shared.clone())),
        )
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "on" } else { "off" })
    }
}

/// A place in a trace that is recorded; nowhere by default. Cheap to clone.
#[derive(Clone, Default)]
pub struct Place(Option<(Context, Arc<Shared>)>);

impl Place {
    /// A span that belongs there.
    pub fn span(&self, kind: SpanKind, name: impl FnOnce() -> String) -> Span {
        match &self.0 {
            Some((context, shared)) => Span::start(shared, (*context, false), kind, &name()),
            None => Span::none(),
        }
    }

    /// The place of a span that was started here.
    pub fn within(&self, span: &Span) -> Self {
        let shared = self.0.as_ref().map(|(_, shared)| shared.clone());
        Self(span.context().zip(shared))
    }

    /// The header that a provider is sent, if it is to have one.
    pub fn for_providers(&self) -> Option<String> {
        let told = self.0.as_ref().filter(|(_, shared)| shared.to_providers);
        told.map(|(context, _)| context.to_string())
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some((context, _)) => write!(f, "{context}"),
            None => f.write_str("nowhere"),
        }
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        let context = |place: &Self| place.0.as_ref().map(|(context, _)| *context);
        context(self) == context(other)
    }
}
