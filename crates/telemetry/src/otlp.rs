//! Spans as a request of OTLP in JSON: ids as digits of base 16, times and whole numbers as texts, kinds as numbers.

use std::fmt::Write;

use crate::attributes;
use crate::finished::{Finished, SpanKind, Value};

/// Who recorded them, in the words of OpenTelemetry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// `service.name`.
    pub service: String,
    /// `service.version`, of the program.
    pub version: &'static str,
    /// `service.instance.id`, of the process.
    pub instance: String,
}

/// The body of a request to `/v1/traces`.
pub fn request(of: &Resource, spans: &[Finished]) -> String {
    let mut out = String::with_capacity(512 * (spans.len() + 1));
    out.push_str(r#"{"resourceSpans":[{"resource":{"attributes":["#);
    let about = [
        ("service.name", of.service.as_str()),
        ("service.version", of.version),
        ("service.instance.id", &of.instance),
    ];
    for (at, (name, value)) in about.into_iter().enumerate() {
        comma(&mut out, at);
        attribute(&mut out, name, &Value::Text(value.to_owned()));
    }
    out.push_str(r#"]},"scopeSpans":[{"scope":{"name":"threadgraph","version":"#);
    text(&mut out, of.version);
    out.push_str(r#"},"spans":["#);
    for (at, span) in spans.iter().enumerate() {
        comma(&mut out, at);
        write(&mut out, span);
    }
    out.push_str("]}]}]}");
    out
}

fn write(out: &mut String, span: &Finished) {
    out.push('{');
    id(out, "traceId", &span.context.trace);
    id(out, "spanId", &span.context.span);
    if let Some(parent) = &span.parent {
        id(out, "parentSpanId", parent);
    }
    out.push_str(r#""flags":1,"name":"#);
    text(out, &span.name);
    let kind = number(span.kind);
    let (began, ended) = (span.began, span.ended);
    // Writing to a text never fails.
    let _ = write!(
        out,
        r#","kind":{kind},"startTimeUnixNano":"{began}","endTimeUnixNano":"{ended}","attributes":["#
    );
    let failed = span.failed.map(|kind| Value::Text(kind.to_owned()));
    let failed = failed.as_ref().map(|kind| (attributes::ERROR_TYPE, kind));
    let all = span.attributes.iter().map(|(name, value)| (*name, value));
    for (at, (name, value)) in all.chain(failed).enumerate() {
        comma(out, at);
        attribute(out, name, value);
    }
    out.push(']');
    if span.failed.is_some() {
        out.push_str(r#","status":{"code":2}"#);
    }
    out.push('}');
}

fn id(out: &mut String, name: &str, bytes: &[u8]) {
    out.push('"');
    out.push_str(name);
    out.push_str("\":\"");
    out.push_str(&hex::encode(bytes));
    out.push_str("\",");
}

fn attribute(out: &mut String, name: &str, value: &Value) {
    out.push_str(r#"{"key":"#);
    text(out, name);
    match value {
        Value::Text(said) => {
            out.push_str(r#","value":{"stringValue":"#);
            text(out, said);
            out.push_str("}}");
        }
        Value::Number(number) => {
            let _ = write!(out, r#","value":{{"intValue":"{number}"}}}}"#);
        }
    }
}

fn comma(out: &mut String, at: usize) {
    if at > 0 {
        out.push(',');
    }
}

/// A text with its quotes.
fn text(out: &mut String, said: &str) {
    // A text can always be written.
    out.push_str(&serde_json::to_string(said).unwrap_or_default());
}

fn number(kind: SpanKind) -> u8 {
    match kind {
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
        SpanKind::Producer => 4,
        SpanKind::Consumer => 5,
    }
}
