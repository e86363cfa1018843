//! Spans of traces, as OpenTelemetry has them: what a process did for a request, how long that took, and for which span
//! of which process.
//!
//! * [`Context`] is the place in a trace that a message carries, as W3C `traceparent`.
//! * [`Tracer`] starts spans; one that is off starts none, and costs nothing. A [`Span`] that ends goes to a bounded queue.
//! * [`Spans`] is the other end of that queue, for the one task of a process that exports them.
//! * [`otlp`] writes them as OTLP does in JSON.
//!
//! A span holds names, ids and counts, never a text of a user, a key or an address. Nothing here waits for a receiver, and
//! nothing here speaks HTTP: what finds no room in the queue is dropped and counted.
//!
//! ```
//! use tg_telemetry::{Sampling, SpanKind, Tracer};
//!
//! let (tracer, _spans) = Tracer::new(Sampling { share: 1.0, to_providers: false }, || 7);
//! let root = tracer.root(SpanKind::Server, &tg_telemetry::Context::fresh().to_string(), || "rest agent".to_owned());
//! let asked = tracer.child(SpanKind::Client, root.traceparent().as_deref(), || "ask agent".to_owned());
//! assert_eq!(&root.traceparent().unwrap()[..35], &asked.traceparent().unwrap()[..35]);
//! let off = Tracer::default().child(SpanKind::Client, root.traceparent().as_deref(), || unreachable!());
//! assert_eq!(off.traceparent(), None);
//! ```

pub mod attributes;
mod context;
mod finished;
pub mod otlp;
mod queue;
mod span;
mod tracer;

pub use context::Context;
pub use finished::{Finished, SpanKind, Value};
pub use queue::{BYTES, SPANS, Spans, lost};
pub use span::Span;
pub use tracer::{Place, Sampling, Tracer};

#[cfg(test)]
mod tests;
