//! Splits a question among subagents, and reports what comes of a subagent's run.

use std::collections::VecDeque;
use std::ops::Range;

use tg_provenance::Reason;
use tg_schemas::msg::LoopRecord;

use super::execution::StepExecution;
use super::fan_in::{Task, Work};
use super::think::{Shown, decided};
use super::went::Went;
use crate::engine::decision::{Decision, Ending, Finding, Observation, Taken, Usage};
use crate::engine::delegating::PER_STEP;
use crate::engine::guards::Climbed;
use crate::engine::plan;
use crate::engine::splitting::{self, DECOMPOSE};
use crate::engine::toolset::ToolSet;
use crate::engine::trace::{Entries, Left};
use crate::error::{AgentError, Stop};
use crate::store::StepRow;

/// Goals that have no subagent yet, by number.
struct Goals(VecDeque<(u32, String)>);

impl Work for Goals {
    fn numbers(&self) -> Range<u32> {
        0..PER_STEP
    }

    fn next(&mut self) -> Option<Task> {
        let (number, goal) = self.0.pop_front()?;
        Some(Task {
            number,
            goal,
            agent: None,
            timeout: None,
            slot: false,
            session: String::new(),
            window: Vec::new(),
        })
    }

    fn found(&mut self, finding: &Finding) -> Option<String> {
        self.0.retain(|(number, _)| *number != finding.subagent);
        None
    }
}

impl StepExecution {
    /// Has the model split the question. Where it does not, it is one goal.
    pub(super) async fn decompose(&mut self, tools: &ToolSet) -> Result<Decision, Stop> {
        let available = tools.available(&self.run);
        let additional = self.additional();
        let most = self.router().subagents();
        let terms = splitting::decompose(&self.run, most, &available, additional.as_deref());
        let mut usage = Usage::default();
        let mut goals = None;
        for _ in 0..=self.agent.options.repairs {
            let text = self.ask_whole(DECOMPOSE, &terms, &mut usage).await?;
            goals = text.and_then(|text| plan::goals(&text, most));
            if goals.is_some() {
                break;
            }
            metrics::counter!("tg_agent_unreadable_replies_total").increment(1);
        }
        let mut goals = goals.unwrap_or_default();
        if goals.is_empty() {
            goals.push(self.run.question.clone());
        }
        let told = splitting::decomposed(&goals);
        let taken = Taken::Goals { goals };
        Ok(decided(taken, Shown::whole(told), usage, &available))
    }

    /// Has a subagent go about each goal, and waits for what they find.
    pub(super) async fn gather(
        &mut self,
        decision: &Decision,
        goals: &[String],
    ) -> Result<Observation, Stop> {
        let mut work = Goals((0..).zip(goals.iter().cloned()).collect());
        self.fan_out(decision, &mut work).await
    }

    /// A subagent's run is over with an answer.
    pub(super) fn answered(&self, decision: &Decision, text: &str, head: &str) -> Went {
        self.over_with(Some(decision), None, |finding| {
            finding.text = text.to_owned();
            finding.citations.clone_from(&decision.citations);
            finding.head = head.to_owned();
        })
    }

    /// A subagent's run was stopped with the best that it had, which may name any source that it came upon.
    pub(super) fn broken(
        &self,
        decision: Option<&Decision>,
        seen: Option<&Observation>,
        text: &str,
        head: &str,
    ) -> Went {
        let sources = seen.into_iter().flat_map(|seen| &seen.citations);
        let sources = self.run.citations.iter().chain(sources);
        self.over_with(decision, seen, |finding| {
            finding.text = text.to_owned();
            finding.stopped = true;
            finding.citations = sources.cloned().collect();
            finding.head = head.to_owned();
        })
    }

    /// A subagent's run is over without an answer.
    pub(super) fn failed(&self, decision: Option<&Decision>, ending: &Ending, head: &str) -> Went {
        self.over_with(decision, self.seen.as_ref(), |finding| {
            finding.error = Some(ending.message.clone());
            finding.head = head.to_owned();
        })
    }

    /// The last calls of an agent that was given work: somebody may come back to its session.
    fn made(&self, decision: Option<&Decision>, seen: Option<&Observation>) -> Vec<LoopRecord> {
        if self.run.agent.is_empty() {
            return Vec::new();
        }
        let window = match (decision, seen) {
            (Some(decision), Some(seen)) => self.window_after(decision, seen),
            _ => self.window(),
        };
        window.into_records()
    }

    fn over_with(
        &self,
        decision: Option<&Decision>,
        seen: Option<&Observation>,
        say: impl FnOnce(&mut Finding),
    ) -> Went {
        let mut usage = self.used_before();
        let took = [
            decision.map(|decision| &decision.usage),
            seen.map(|seen| &seen.usage),
        ];
        took.into_iter().flatten().for_each(|one| usage.add(one));
        let mut finding = Finding {
            goal: self.run.question.clone(),
            run: self.run.run.clone(),
            usage,
            window: self.made(decision, seen),
            ..Finding::default()
        };
        say(&mut finding);
        Went::Over(Box::new(finding))
    }

    /// What came of a subagent's step that is done.
    pub(super) fn again(&self, row: &StepRow) -> Option<Went> {
        let (decision, seen) = (row.decision.as_ref(), row.observation.as_ref());
        let head = Entries::head(&self.promised(&Left {
            decision,
            seen,
            ending: row.ending.as_ref(),
            ..Left::default()
        }));
        let guards = [
            decision.and_then(|decision| decision.guard.as_ref()),
            seen.and_then(|seen| seen.guard.as_ref()),
        ];
        if guards.into_iter().flatten().any(Climbed::stops) {
            // Its end is made of the same rows, in the same words.
            return None;
        }
        match (&row.ending, decision?, seen) {
            (Some(ending), decision, _) => Some(self.failed(Some(decision), ending, &head)),
            (None, decision, seen) => match (&decision.taken, seen) {
                (Taken::Answer { text }, _) => Some(self.answered(decision, text, &head)),
                (_, Some(seen)) => Some(Went::On(Box::new(self.next(decision, seen, None)))),
                _ => None,
            },
        }
    }
}

/// The end of a run whose subagents found nothing, each of them.
pub(super) fn nothing_found(decision: &Decision, seen: &Observation) -> Option<Ending> {
    if !matches!(decision.taken, Taken::Goals { .. }) {
        return None;
    }
    let lost = seen.findings.iter().map(|found| &found.error).min()?;
    let error = AgentError::NoFinding(lost.clone()?);
    Some(Ending::new(Reason::Error, &error.into()))
}
