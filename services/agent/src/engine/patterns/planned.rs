//! Plan, then execute: the model plans steps, each of which is one call of a tool, and answers from what they found.

use tg_provenance::{
    Plan, Session, StepResult, Usage as Used, hash_of, plan as plan_entry, step_result,
};
use tg_schemas::msg::{AgentRun, PlanStep};

use crate::engine::decision::{Decision, Observation, Taken, outcomes};
use crate::engine::linked::Linked;
use crate::engine::pattern::{Decided, Done, Pattern};
use crate::engine::phase::Phase;
use crate::engine::plan;
use crate::engine::trace::{Entries, Left, Stored, used, used_by_tool};

/// See the module.
pub(super) struct Planned;

/// The step that comes first of those that are taken now.
fn first(run: &AgentRun) -> usize {
    plan::ready(&run.plan).unwrap_or_default()
}

impl Pattern for Planned {
    fn next(&self, run: &AgentRun) -> Phase {
        match run.plan.is_empty() || plan::is_to_be_revised(run) {
            true => Phase::Plan,
            false => plan::ready(&run.plan).map_or(Phase::Conclude, Phase::Execute),
        }
    }

    fn before(&self, run: &AgentRun, _: u32) -> String {
        let id = Session::new(&run.run);
        let taken = |at: &usize| plan::taken(&run.plan[*at..=*at]) > 0;
        match (0..run.plan.len()).rev().find(taken) {
            Some(last) => id.step_result(last),
            None if run.plan.is_empty() => id.iri().to_owned(),
            None => id.plan(run.revisions.len()),
        }
    }

    /// What a step found stands in the plan.
    fn record(&self, next: &mut AgentRun, done: Done<'_>) {
        if let Taken::Plan {
            steps,
            revisions_left,
        } = &done.decision.taken
        {
            return plan::adopt(next, steps, *revisions_left);
        }
        next.state.clone_from(&done.run.state);
        let first = first(done.run);
        let steps = outcomes(done.decision, done.seen);
        let may_revise = plan::taken(&done.run.plan) + steps.len() < done.most;
        for (_, one, seen) in steps {
            let (at, failed) = (one.place.unwrap_or(first), seen.error.is_some());
            plan::settle(next, at, &seen.text, failed, may_revise);
        }
        next.history.push(done.step);
    }

    fn render(&self, of: &Entries<'_>, left: &Decided<'_>, linked: &mut Linked) {
        let id = &Session::new(&of.run.run);
        let decision = left.decision;
        if let Taken::Plan { steps, .. } = &decision.taken {
            if !left.begun {
                of.planned(id, decision, steps, linked);
            }
            return;
        }
        let first = first(of.run);
        if let Some(seen) = left.seen {
            let from = Phase::Execute(first).gives_work(of.run, of.step);
            of.found(id, &seen.findings, &from, linked);
        }
        if let Some(seen) = left.returned() {
            of.steps(id, (first, decision), seen, left.stored, linked);
        }
    }

    fn last(&self, of: &Entries<'_>, left: &Left<'_>) -> String {
        let id = Session::new(&of.run.run);
        let Some(decision) = left.decision else {
            return self.before(of.run, of.step);
        };
        match (&decision.taken, left.seen.filter(|seen| seen.is_there())) {
            (Taken::Plan { .. }, _) => id.plan(of.revision()),
            (_, Some(seen)) => {
                let calls = outcomes(decision, seen);
                let last = calls.last().and_then(|call| call.1.place);
                id.step_result(last.unwrap_or(first(of.run)))
            }
            (_, None) => self.before(of.run, of.step),
        }
    }
}

impl Entries<'_> {
    /// The steps were planned, or planned anew.
    fn planned(&self, id: &Session, decision: &Decision, steps: &[PlanStep], linked: &mut Linked) {
        let goals: Vec<String> = steps.iter().map(|step| step.goal.clone()).collect();
        let first = self.run.plan.is_empty();
        let before = Planned.before(self.run, self.step);
        let asked = decision.asked();
        let facts = Plan {
            revision: self.revision(),
            goals: &goals,
            after: (!first).then_some(before.as_str()),
            usage: used(&asked),
        };
        linked.add(plan_entry(id, &facts), None);
    }

    /// Number of the plan that this step makes.
    fn revision(&self) -> usize {
        let revisions = self.run.revisions.len();
        revisions + usize::from(!self.run.plan.is_empty())
    }

    /// Steps of a plan were taken, the one `at` this place or several.
    fn steps(
        &self,
        id: &Session,
        (at, decision): (usize, &Decision),
        seen: &Observation,
        stored: Stored,
        linked: &mut Linked,
    ) {
        let took = decision.asked();
        for (nth, one, seen) in outcomes(decision, seen) {
            // What the choice of all took stands with the first.
            let chose = match nth {
                0 => used(&took),
                _ => Used::default(),
            };
            let usage = chose.and(&used_by_tool(seen));
            let at = one.place.unwrap_or(at);
            self.asked(id, (nth, &one, &id.step_result(at)), seen, linked);
            let stored = self.stored_of(nth, seen, stored);
            self.executed(id, (at, &one, usage), seen, stored, linked);
        }
    }

    /// A step of a plan was taken; what its tool left behind follows from it.
    fn executed(
        &self,
        id: &Session,
        (at, decision, usage): (usize, &Decision, Used<'_>),
        seen: &Observation,
        stored: Stored,
        linked: &mut Linked,
    ) {
        let (action, arguments) = decision.action();
        let facts = StepResult {
            number: at,
            revision: self.run.revisions.len(),
            goal: self.run.plan.get(at).map_or("", |step| &step.goal),
            action: &action,
            arguments: &arguments,
            usage,
            duration_ms: Some(seen.duration_ms),
            error: seen.error.as_deref(),
            stored: stored.text,
        };
        let last = seen.trace.last();
        let other = last.and_then(|last| hash_of(&last.id, &last.triples));
        linked.join(step_result(id, &facts), Some(&seen.text), other);
    }
}
