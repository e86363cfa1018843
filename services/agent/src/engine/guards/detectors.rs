//! Four kinds of loops, found in the last calls. Each counts; a count that is large enough is a finding.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use tg_schemas::msg::LoopRecord;

use super::thresholds::Thresholds;
use super::window::{Window, same_call};

/// Words in the names of tools that are asked again and again until something has changed.
const POLLS: [&str; 8] = [
    "poll", "status", "check", "wait", "watch", "tail", "progress", "job",
];

/// What the model is advised to do.
pub(super) const ADVICE: &str =
    "Use what it returned, try something else, or give the final answer";

/// What found it. A later one is more specific.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detector {
    /// One call again and again.
    GenericRepeat,
    /// Two calls in turn, whose results do not change.
    PingPong,
    /// A poll that always returns the same.
    KnownPollNoProgress,
    /// So many of one call that no run may go on.
    GlobalCircuitBreaker,
}

impl Detector {
    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GenericRepeat => "generic_repeat",
            Self::PingPong => "ping_pong",
            Self::KnownPollNoProgress => "known_poll_no_progress",
            Self::GlobalCircuitBreaker => "global_circuit_breaker",
        }
    }
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The run may go on.
    Warning,
    /// It may not.
    Critical,
}

/// A loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad.
    pub level: Level,
    /// What found it.
    pub detector: Detector,
    /// Tool that was called last.
    pub tool: String,
    /// What the detector counted.
    pub count: usize,
}

impl Finding {
    /// What it says of itself.
    pub fn message(&self) -> String {
        let (tool, count) = (&self.tool, self.count);
        let what = match self.detector {
            Detector::GenericRepeat | Detector::GlobalCircuitBreaker => {
                format!("'{tool}' was called {count} times with the same arguments")
            }
            Detector::PingPong => {
                format!("'{tool}' and another call took turns {count} times with the same results")
            }
            Detector::KnownPollNoProgress => {
                format!("'{tool}' was polled {count} times and returned the same")
            }
        };
        match self.level {
            Level::Warning => format!("{what}. {ADVICE}"),
            Level::Critical => format!("{what}; the loop is broken"),
        }
    }
}

/// Whether a tool is asked again and again until something has changed, by its name or as configured.
pub fn is_poll(name: &str, configured: bool) -> bool {
    let name = name.to_lowercase();
    configured || POLLS.iter().any(|word| name.contains(word))
}

/// What is found before the newest call is made.
pub fn before(window: &Window, limits: &Thresholds) -> Option<Finding> {
    look(window, limits, |records, newest| {
        [
            (
                Detector::GenericRepeat,
                limits.generic_repeat,
                repeats(records, newest),
            ),
            (Detector::PingPong, limits.ping_pong, turns(records)),
        ]
    })
    .into_iter()
    .chain(broken(window, limits))
    .max_by_key(|found| (found.level, found.detector))
}

/// What is found when it has returned.
pub fn after(window: &Window, limits: &Thresholds, poll: bool) -> Option<Finding> {
    look(window, limits, |records, newest| {
        [
            (
                Detector::KnownPollNoProgress,
                limits.known_poll_no_progress && poll,
                unchanged(records, newest),
            ),
            (Detector::PingPong, limits.ping_pong, turns(records)),
        ]
    })
}

fn look<const N: usize>(
    window: &Window,
    limits: &Thresholds,
    counts: impl FnOnce(&[LoopRecord], &LoopRecord) -> [(Detector, bool, usize); N],
) -> Option<Finding> {
    let records = window.records();
    let newest = records.last().filter(|_| limits.enabled)?;
    let counted = counts(records, newest).into_iter();
    let found = counted
        .filter(|(_, wanted, _)| *wanted)
        .filter_map(|(detector, _, count)| {
            let level = match count {
                count if count >= limits.critical => Level::Critical,
                count if count >= limits.warning => Level::Warning,
                _ => return None,
            };
            Some(Finding {
                level,
                detector,
                tool: newest.t.clone(),
                count,
            })
        });
    found.max_by_key(|found| (found.level, found.detector))
}

/// Calls like the newest.
fn repeats(records: &[LoopRecord], newest: &LoopRecord) -> usize {
    let same = records.iter().filter(|record| same_call(record, newest));
    same.count()
}

/// Calls like the newest at the end, one behind the other, with its result.
fn unchanged(records: &[LoopRecord], newest: &LoopRecord) -> usize {
    if newest.r.is_empty() {
        return 0;
    }
    let same = |record: &&LoopRecord| same_call(record, newest) && record.r == newest.r;
    records.iter().rev().take_while(same).count()
}

/// Calls at the end in which two take turns, in whole pairs; none if one of the two ever returned something else.
fn turns(records: &[LoopRecord]) -> usize {
    let [.., other, newest] = records else {
        return 0;
    };
    if records.len() < 4 || same_call(other, newest) {
        return 0;
    }
    let two = [newest, other];
    let fits = |(at, record): &(usize, &LoopRecord)| same_call(record, two[at % 2]);
    let trail = records.iter().rev().enumerate().take_while(fits);
    let mut known = [""; 2];
    let mut count = 0;
    for (at, record) in trail {
        // What the newest returns may not be known yet.
        if !record.r.is_empty() {
            match known[at % 2] {
                "" => known[at % 2] = &record.r,
                result if result != record.r => return 0,
                _ => {}
            }
        }
        count += 1;
    }
    count / 2 * 2
}

/// Whether any call was made so often that no run may go on.
fn broken(window: &Window, limits: &Thresholds) -> Option<Finding> {
    if !limits.enabled || window.records().len() < limits.breaker {
        return None;
    }
    let mut counts: HashMap<(&str, &str), usize> = HashMap::new();
    for record in window.records() {
        *counts.entry((&record.t, &record.a)).or_default() += 1;
    }
    let most = counts
        .into_iter()
        .max_by_key(|(call, count)| (*count, *call));
    let ((tool, _), count) = most.filter(|(_, count)| *count >= limits.breaker)?;
    Some(Finding {
        level: Level::Critical,
        detector: Detector::GlobalCircuitBreaker,
        tool: tool.to_owned(),
        count,
    })
}
