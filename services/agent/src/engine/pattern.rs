//! The seam between a run and the pattern that it follows: what comes next, what a step records, and how it is rendered. The run,
//! its steps and its trace ask these, and know no pattern by name.

use tg_schemas::msg::{AgentRun, AgentRunStep};

use super::decision::{Decision, Observation};
use super::linked::Linked;
use super::phase::Phase;
use super::trace::{Entries, Left, Stored};

/// A step that was decided and has returned.
pub struct Done<'a> {
    /// The run before it.
    pub run: &'a AgentRun,
    /// What was decided.
    pub decision: &'a Decision,
    /// What came of it.
    pub seen: &'a Observation,
    /// Its place in the history of the run, without thought and result.
    pub step: AgentRunStep,
    /// What the model is shown of what it saw.
    pub shown: &'a dyn Fn() -> String,
    /// Steps that a run may take.
    pub most: usize,
}

/// How runs of a pattern go on.
pub trait Pattern: Sync {
    /// What the next step of a run is for.
    fn next(&self, run: &AgentRun) -> Phase;

    /// The entity that a step follows from, before it has any itself.
    fn before(&self, run: &AgentRun, step: u32) -> String;

    /// Records in the run what a step leaves to those after it.
    fn record(&self, next: &mut AgentRun, done: Done<'_>);

    /// The entries of what was decided, if that is no answer, and of what came of it.
    fn render(&self, of: &Entries<'_>, left: &Decided<'_>, linked: &mut Linked);

    /// The entity that the end of a run follows from which ended in this step, after something was decided that is no answer.
    fn last(&self, of: &Entries<'_>, left: &Left<'_>) -> String;
}

/// What was decided, and what came of it so far.
#[derive(Clone, Copy)]
pub struct Decided<'a> {
    /// The decision.
    pub decision: &'a Decision,
    /// What came of it.
    pub seen: Option<&'a Observation>,
    /// What became of the texts.
    pub stored: Stored,
    /// The entries of the decision are there: those of what came of it go on from them.
    pub begun: bool,
}

impl<'a> Decided<'a> {
    /// What came of it, if all of that is there.
    pub fn returned(&self) -> Option<&'a Observation> {
        self.seen.filter(|seen| seen.is_there())
    }
}
