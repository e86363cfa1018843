//! Spans of runs as a tree: each with when it began after the span that it belongs to, how long it took, and how much of that
//! it spent itself, while none of those that belong to it went on.

use std::collections::BTreeMap;

use tg_testkit::otlp::Received;

/// What the span of an agent's question at the gateway is called, among other words.
const ASKED: &str = "agent";
/// How deep a tree is drawn.
pub const DEEP: usize = 64;

/// The traces of runs that came after the first so many spans: id and how long the root took.
pub fn runs(all: &[Received], earlier: usize) -> BTreeMap<String, u64> {
    let roots = all.iter().skip(earlier).filter(|span| {
        let root = span.parent.is_none();
        root && span.name.contains(ASKED)
    });
    roots
        .map(|span| (span.trace.clone(), span.ended - span.began))
        .collect()
}

/// The trace whose root took the middle of all.
pub fn middle(all: &[Received], earlier: usize) -> Option<String> {
    let mut each: Vec<(String, u64)> = runs(all, earlier).into_iter().collect();
    each.sort_by_key(|(_, took)| *took);
    let at = each.len() / 2;
    each.into_iter().nth(at).map(|(trace, _)| trace)
}

/// The lines of a trace.
pub fn drawn(all: &[Received], trace: &str) -> Vec<String> {
    let own: Vec<&Received> = all.iter().filter(|span| span.trace == trace).collect();
    let known = |id: &str| own.iter().any(|span| span.span == id);
    let mut roots: Vec<&Received> = own
        .iter()
        .copied()
        .filter(|span| !span.parent.as_deref().is_some_and(known))
        .collect();
    roots.sort_by_key(|span| span.began);
    let mut lines = vec![format!(
        "{:>8} {:>8} {:>8} {:>8}",
        "at", "waited", "took", "itself"
    )];
    let Some(first) = roots.first().map(|span| span.began) else {
        return lines;
    };
    for root in &roots {
        draw(&own, root, (first, root.began), 0, &mut lines);
    }
    lines
}

/// A span and what belongs to it, in the order in which that began. `since`: when the run began, and the span above.
fn draw(
    own: &[&Received],
    span: &Received,
    since: (u64, u64),
    depth: usize,
    lines: &mut Vec<String>,
) {
    let mut below: Vec<&Received> = own
        .iter()
        .copied()
        .filter(|other| other.parent.as_ref() == Some(&span.span))
        .collect();
    below.sort_by_key(|other| other.began);
    let (run, above) = since;
    let took = span.ended - span.began;
    let itself = took.saturating_sub(covered((span.began, span.ended), &below));
    lines.push(format!(
        "{:8.2} {:8.2} {:8.2} {:8.2}  {}{} ({})",
        millis(span.began.saturating_sub(run)),
        millis(span.began.saturating_sub(above)),
        millis(took),
        millis(itself),
        "  ".repeat(depth),
        span.name,
        span.service,
    ));
    if depth < DEEP {
        for other in below {
            draw(own, other, (run, span.began), depth + 1, lines);
        }
    }
}

/// How long any of some spans, ordered by their beginnings, went on between two moments.
pub fn covered((began, ended): (u64, u64), below: &[&Received]) -> u64 {
    let (mut sum, mut until) = (0, began);
    for span in below {
        let (from, to) = (span.began.max(until), span.ended.min(ended));
        if to > from {
            sum += to - from;
            until = to;
        }
    }
    sum
}

pub fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}
