//! What is measured, its targets, and the table of both.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Result;

use crate::system::Shape;

#[derive(Clone, Copy)]
enum Target {
    AtMost(f64),
    AtLeast(f64),
    None,
}

/// What is measured: name, unit, and the targets: embedded, over RabbitMQ in one process, in a process per service.
/// Printed in this order.
type Row = (&'static str, &'static str, Target, Target, Target);

const ROWS: &[Row] = {
    use Target::{AtLeast, AtMost, None};
    const fn both(target: Target) -> (Target, Target, Target) {
        (target, target, target)
    }
    const fn row(name: &'static str, unit: &'static str, of: (Target, Target, Target)) -> Row {
        (name, unit, of.0, of.1, of.2)
    }
    &[
        row(RUN, "ms", (AtMost(1.5), AtMost(5.0), AtMost(8.0))),
        row(TEXT, "ms", both(AtMost(3.0))),
        row(
            RUNS,
            "/s",
            (AtLeast(1_200.0), AtLeast(500.0), AtLeast(400.0)),
        ),
        row(OURS, "ms", (AtMost(1.2), None, AtMost(3.0))),
        row(BROKERS, "ms", (None, None, AtMost(1.8))),
        row("token delay, agent, p99", "ms", both(AtMost(1.0))),
        row("token delay, completion, p99", "ms", both(AtMost(1.0))),
        row("messages a run, streamed", "", both(AtMost(40.0))),
        row("messages a run, not streamed", "", both(AtMost(40.0))),
        row(
            "config get",
            "/s",
            (AtLeast(5_000.0), AtLeast(2_000.0), AtLeast(2_000.0)),
        ),
        row(
            "text completion",
            "/s",
            (AtLeast(3_000.0), AtLeast(1_200.0), AtLeast(1_200.0)),
        ),
        row(
            "triples query",
            "/s",
            (AtLeast(5_000.0), AtLeast(2_000.0), AtLeast(2_000.0)),
        ),
        row("triples import socket", "/s", both(AtLeast(20_000.0))),
        row(
            "start-flow",
            "ms",
            (AtMost(20.0), AtMost(150.0), AtMost(150.0)),
        ),
        row(
            "stop-flow, idle",
            "ms",
            (AtMost(20.0), AtMost(150.0), AtMost(150.0)),
        ),
        row(
            "ready from nothing",
            "ms",
            (AtMost(2_000.0), AtMost(2_000.0), None),
        ),
        row(
            "ready with this run's stores",
            "ms",
            (AtMost(1_000.0), AtMost(1_000.0), None),
        ),
        row(
            "resident, idle, empty stores",
            "MB",
            (AtMost(100.0), AtMost(100.0), None),
        ),
        row(OWN, "MB", (None, None, AtMost(10.0))),
        row(OWN_OF_ALL, "MB", (None, None, None)),
        row(OWN_AFTER, "MB", (None, None, None)),
        row(FILE, "MB", both(AtMost(40.0))),
        row(COMMAND, "ms", both(AtMost(15.0))),
    ]
};
pub const RUN: &str = "agent run, p50, 1 at a time";
pub const TEXT: &str = "first text chunk, p50";
pub const RUNS: &str = "agent runs, 32 in flight";
pub const OURS: &str = "processor time a run at 32";
pub const BROKERS: &str = "the broker's, a run at 32";
pub const OWN: &str = "own memory, the largest process";
pub const OWN_OF_ALL: &str = "own memory of all, idle";
pub const OWN_AFTER: &str = "own memory of all, after load";
pub const FILE: &str = "the program's file";
pub const COMMAND: &str = "the slowest tg command";

/// Samples by name, and what went wrong.
#[derive(Default)]
pub struct Figures {
    samples: BTreeMap<&'static str, Vec<f64>>,
    /// Processor time that a run at 32 takes of each process, in milliseconds, for each round.
    pub by_process: Vec<Vec<f64>>,
    pub faults: Vec<String>,
}

impl Figures {
    pub fn add(&mut self, name: &'static str, value: f64) {
        self.samples.entry(name).or_default().push(value);
    }

    pub fn keep(&mut self, name: &'static str, value: Result<f64>) {
        match value {
            Ok(value) => self.add(name, value),
            Err(fault) => self.faults.push(format!("{name}: {fault:#}")),
        }
    }

    /// The median of a figure, where it was measured.
    pub fn median(&self, name: &str) -> Option<f64> {
        let mut sorted = self.samples.get(name)?.clone();
        sorted.sort_by(f64::total_cmp);
        Some(middle(&sorted))
    }

    /// The median of each, the largest first.
    fn by_service(&self, names: &[String]) -> String {
        let median = |at: usize| {
            let mut sorted: Vec<f64> = self.by_process.iter().map(|each| each[at]).collect();
            sorted.sort_by(f64::total_cmp);
            middle(&sorted)
        };
        let names = names.iter().enumerate();
        let mut each: Vec<_> = names.map(|(at, name)| (name, median(at))).collect();
        each.sort_by(|one, other| other.1.total_cmp(&one.1));
        let texts = each.iter().map(|(name, time)| format!("{name} {time:.2}"));
        texts.collect::<Vec<_>>().join(", ")
    }

    /// A line for each figure; `names` are those of the processes.
    pub fn print(&self, shape: Shape, names: &[String]) {
        for (name, unit, embedded, one_process, per_service) in ROWS {
            let target = match shape {
                Shape::Embedded => embedded,
                Shape::OneProcess => one_process,
                Shape::ProcessPerService => per_service,
            };
            let Some(samples) = self.samples.get(name) else {
                continue;
            };
            let mut sorted = samples.clone();
            sorted.sort_by(f64::total_cmp);
            let median = middle(&sorted);
            let (goal, met) = match target {
                Target::AtMost(most) => (format!("at most {most}"), median <= *most),
                Target::AtLeast(least) => (format!("at least {least}"), median >= *least),
                Target::None => (String::new(), true),
            };
            let verdict = match target {
                Target::None => "",
                _ if met => "met",
                _ => "MISSED",
            };
            let spread = format!(
                "{} to {} ({})",
                short(sorted[0]),
                short(sorted[sorted.len() - 1]),
                sorted.len()
            );
            println!(
                "  {name:32} {:>9} {unit:3} {spread:24} {goal:16} {verdict}",
                short(median)
            );
        }
        if shape == Shape::ProcessPerService {
            println!("  {OURS}, by service, ms: {}", self.by_service(names));
        }
        for fault in &self.faults {
            println!("  FAILED {fault}");
        }
    }
}

fn short(value: f64) -> String {
    if value >= 100.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}

/// The median of sorted samples.
pub fn middle(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

pub fn millis(from: Instant) -> f64 {
    from.elapsed().as_secs_f64() * 1_000.0
}
