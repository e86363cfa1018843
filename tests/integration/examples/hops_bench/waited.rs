//! What a run waits for, hop by hop. Each span that the answer waits for counts the time in which none of the spans below it goes
//! on. For a question that time has two parts. The way there is from the question to the begin of the work on it: the asker writes
//! it, the bus passes it on, the reader wakes up and gets a core. The way back is from the end of that work to the last part with
//! the asker. On the embedded bus a way costs nearly nothing, so the difference between the buses is what the broker adds.

use std::collections::BTreeMap;

use tg_testkit::otlp::Received;

use crate::spans::{self, DEEP, covered, millis};

/// How the spans begin that are looked at by their names: who asks, who works on a message, and a step of the agent.
const ASKS: &str = "ask ";
const WORKS: &str = "process ";
const STEP: &str = "agent step";
/// What a question and the work on it have in common.
const OF_QUESTION: &str = "messaging.message.conversation_id";
const OF_WORK: &str = "messaging.message.id";
/// The kind of a span that sends and does not wait for an answer itself.
const PRODUCER: u8 = 4;

/// Milliseconds of one hop, in each run that has it.
#[derive(Debug, Default)]
struct Samples {
    at: Vec<f64>,
    itself: Vec<f64>,
    there: Vec<f64>,
    back: Vec<f64>,
}

/// What runs waited for on one bus.
#[derive(Debug, Default)]
pub struct Waited {
    whole: Vec<f64>,
    /// By the span's name and how many of that name came before it in the run.
    hops: BTreeMap<String, Samples>,
}

impl Waited {
    /// Of the runs that came after the first so many spans.
    pub fn of(all: &[Received], earlier: usize) -> Self {
        let mut waited = Self::default();
        for (trace, took) in spans::runs(all, earlier) {
            let own: Vec<&Received> = all.iter().filter(|span| span.trace == trace).collect();
            waited.whole.push(millis(took));
            waited.add(&own);
        }
        waited
    }

    /// Adds the spans of a run.
    fn add(&mut self, own: &[&Received]) {
        let Some(root) = own.iter().find(|span| span.parent.is_none()) else {
            return;
        };
        let mut ways: Vec<&Received> = own
            .iter()
            .copied()
            .filter(|span| delays(own, span))
            .collect();
        ways.sort_by_key(|span| span.began);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for span in ways.iter().copied().filter(|span| span.began < root.ended) {
            let nth = counts.entry(span.name.as_str()).or_default();
            *nth += 1;
            let hop = self.hops.entry(format!("{} {nth}", span.name)).or_default();
            // What goes on after the answer keeps nobody waiting.
            let until = span.ended.min(root.ended);
            let below = ways.iter().copied();
            let below: Vec<&Received> = below
                .filter(|other| other.parent.as_ref() == Some(&span.span))
                .collect();
            let itself = (until - span.began).saturating_sub(covered((span.began, until), &below));
            hop.at.push(millis(span.began.saturating_sub(root.began)));
            hop.itself.push(millis(itself));
            if let Some(work) = below.iter().find(|work| answers(work, span)) {
                hop.there
                    .push(millis(work.began.saturating_sub(span.began)));
                if span.kind != PRODUCER {
                    hop.back.push(millis(until.saturating_sub(work.ended)));
                }
            }
        }
    }

    /// The lines of each hop, in the order of the run, beside those of another bus.
    pub fn beside(&self, other: &Self) -> Vec<String> {
        let mut lines = vec![format!(
            "{:>8} {:>8} {:>8} {:>8} {:>8}",
            "itself", "embedded", "more", "there", "back"
        )];
        let mut hops: Vec<(&String, &Samples)> = self.hops.iter().collect();
        hops.sort_by(|one, other| median(&one.1.at).total_cmp(&median(&other.1.at)));
        let mut explained = 0.0;
        for (name, hop) in hops {
            let before = other.hops.get(name).map_or(0.0, |hop| median(&hop.itself));
            let itself = median(&hop.itself);
            explained += itself - before;
            lines.push(format!(
                "{itself:8.2} {before:8.2} {:8.2} {} {}  {name}",
                itself - before,
                shown(&hop.there),
                shown(&hop.back),
            ));
        }
        let (whole, before) = (median(&self.whole), median(&other.whole));
        lines.push(format!(
            "a traced run takes {whole:.2} ms, embedded {before:.2}: {:.2} more; these hops: {explained:.2} more",
            whole - before
        ));
        lines
    }
}

/// Whether the answer waits for a span: for all but the work on records, which others write beside it, and what is below that.
fn delays(own: &[&Received], span: &Received) -> bool {
    let mut at = span;
    for _ in 0..DEEP {
        let above = own
            .iter()
            .copied()
            .find(|other| at.parent.as_ref() == Some(&other.span));
        let asked = above.is_some_and(|above| answers(at, above));
        if at.name.starts_with(WORKS) && !asked && !has_step(own, at, DEEP) {
            return false;
        }
        let Some(above) = above else { return true };
        at = above;
    }
    false
}

/// Whether a span is the work on the question of another.
fn answers(work: &Received, ask: &Received) -> bool {
    let id = work.attributes.get(OF_WORK);
    let of = ask.attributes.get(OF_QUESTION);
    ask.name.starts_with(ASKS) && work.name.starts_with(WORKS) && id.is_some() && id == of
}

/// Whether a step of the agent belongs to a span.
fn has_step(own: &[&Received], span: &Received, deep: usize) -> bool {
    let mut below = own
        .iter()
        .filter(|other| other.parent.as_ref() == Some(&span.span));
    deep > 0 && below.any(|other| other.name == STEP || has_step(own, other, deep - 1))
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

fn shown(values: &[f64]) -> String {
    match values {
        [] => format!("{:8}", ""),
        values => format!("{:8.2}", median(values)),
    }
}
