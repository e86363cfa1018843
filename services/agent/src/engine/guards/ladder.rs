//! What follows from a finding: the run is warned of, the model is told, the call is blocked, and at last the run stops with
//! the best that it has.

use serde::{Deserialize, Serialize};
use tg_schemas::msg::AgentRun;

use super::detectors::{self, ADVICE, Detector, Finding, Level};
use super::thresholds::Thresholds;
use super::window::Window;
use crate::engine::bounds::{own_steps, shorten};
use crate::engine::plan::COMPLETED;

/// Warnings of a run that are remembered, so that each is given once.
const MAX_TOLD: usize = 64;
/// Most bytes of what a stopped run shows of its last result.
const SHOWN: usize = 4 << 10;

/// A step of the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// It is noted.
    Warn,
    /// The model reads of it with what the tool returned.
    Tell,
    /// The call is not made.
    Block,
    /// The run ends.
    Stop,
}

impl Rung {
    /// The word for the trace and the metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warn => "warn",
            Self::Tell => "tell",
            Self::Block => "block",
            Self::Stop => "stop",
        }
    }
}

/// The highest rung that a step reached, and why. Is committed with what it follows from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Climbed {
    /// How far.
    pub rung: Rung,
    /// What found it.
    pub detector: Detector,
    /// Tool that was called last.
    pub tool: String,
    /// What was counted.
    pub count: u64,
    /// What the model, or the asker, reads.
    pub message: String,
    /// What makes it the same warning.
    pub key: String,
}

impl Climbed {
    /// Whether the run ends here.
    pub fn stops(&self) -> bool {
        self.rung == Rung::Stop
    }

    fn new(rung: Rung, found: &Finding, key: String) -> Self {
        Self {
            rung,
            detector: found.detector,
            tool: found.tool.clone(),
            count: u64::try_from(found.count).unwrap_or(u64::MAX),
            message: found.message(),
            key,
        }
    }

    /// Why the run was stopped, in one sentence.
    pub fn sentence(&self) -> String {
        format!(
            "Stopped by loop detection ({}): {}",
            self.detector.as_str(),
            self.message
        )
    }
}

/// Where a run stands on the ladder.
#[derive(Debug, Clone, Copy)]
pub struct Ladder<'a> {
    /// When it is too much.
    pub limits: &'a Thresholds,
    /// Warnings that were given.
    pub told: &'a [String],
    /// Whether the call is a poll: only its results say whether it is in vain.
    pub poll: bool,
}

impl Ladder<'_> {
    /// Before the newest call is made. A warning comes first; whoever goes on is blocked, and then stopped.
    pub fn before(&self, window: &Window) -> Option<Climbed> {
        let found = detectors::before(window, self.limits)?;
        let key = key(&found, window);
        let rung = match found.level {
            Level::Critical => Rung::Stop,
            Level::Warning if !self.told.contains(&key) => Rung::Warn,
            Level::Warning if self.poll => return None,
            Level::Warning => Rung::Block,
        };
        Some(Climbed::new(rung, &found, key))
    }

    /// When it has returned, after what was found before.
    pub fn after(&self, window: &Window, warned: Option<&Climbed>) -> Option<Climbed> {
        let tell = |warned: &Climbed| Climbed {
            rung: Rung::Tell,
            ..warned.clone()
        };
        let warned = warned.filter(|warned| warned.rung == Rung::Warn);
        let Some(found) = detectors::after(window, self.limits, self.poll) else {
            return warned.map(tell);
        };
        let key = key(&found, window);
        match found.level {
            Level::Critical => Some(Climbed::new(Rung::Stop, &found, key)),
            // The more specific warning is given, once.
            Level::Warning if self.told.contains(&key) => warned.map(tell),
            Level::Warning => match warned {
                Some(warned) if warned.detector >= found.detector => Some(tell(warned)),
                _ => Some(Climbed::new(Rung::Tell, &found, key)),
            },
        }
    }
}

fn key(found: &Finding, window: &Window) -> String {
    let call = window.records().last();
    let (tool, arguments) = call.map_or(("", ""), |call| (&call.t, &call.a));
    format!("{}:{tool}:{arguments}", found.detector.as_str())
}

/// The warnings of a run with those that a step gave.
pub fn told(mut before: Vec<String>, given: [Option<&Climbed>; 2]) -> Vec<String> {
    for climbed in given.into_iter().flatten() {
        if matches!(climbed.rung, Rung::Warn | Rung::Tell) && !before.contains(&climbed.key) {
            before.push(climbed.key.clone());
        }
    }
    before.drain(..before.len().saturating_sub(MAX_TOLD));
    before
}

/// Begins a warning behind what a tool returned.
const NOTICE: &str = "\n\nWarning: ";

/// A warning as the model reads it, behind what the tool returned.
pub fn notice(climbed: &Climbed) -> String {
    format!("{NOTICE}{}.", climbed.message)
}

/// What a tool returned, without the warning behind it.
fn returned(text: &str) -> &str {
    let text = text.trim();
    let warned = text
        .strip_suffix('.')
        .is_some_and(|text| text.ends_with(ADVICE));
    match text.rfind(NOTICE) {
        Some(at) if warned => &text[..at],
        _ => text,
    }
}

/// What a blocked call returns instead.
pub fn blocked(climbed: &Climbed) -> String {
    format!(
        "this call of '{}' was blocked: {}",
        climbed.tool, climbed.message
    )
}

/// The answer of a run that was stopped: why, and the best it has. `newest` is what the last tool returned, if it did not
/// fail.
pub fn answer(sentence: &str, run: &AgentRun, newest: Option<(&str, &str)>) -> String {
    let steps = own_steps(run).iter().rev();
    let known = steps
        .filter(|step| !step.failed && !step.observation.trim().is_empty())
        .map(|step| (step.action.as_str(), step.observation.as_str()))
        .next();
    match newest.or(known) {
        Some((tool, text)) => format!(
            "{sentence}\n\nThe best so far is what '{tool}' returned:\n{}",
            shorten(returned(text), SHOWN)
        ),
        None => match found(run) {
            Some((goal, text)) => format!(
                "{sentence}\n\nThe best so far is what was found of '{goal}':\n{}",
                shorten(text, SHOWN)
            ),
            None => sentence.to_owned(),
        },
    }
}

/// The last that a step of a plan, or a subagent, found.
fn found(run: &AgentRun) -> Option<(&str, &str)> {
    let mut known = run.plan.iter().rev();
    let last = known.find(|step| step.status == COMPLETED && !step.result.trim().is_empty())?;
    Some((&last.goal, &last.result))
}
