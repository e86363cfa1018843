//! The entries of a run's trace, as functions of the run and its rows: the same rows have the same entries with the same
//! hashes, whoever takes the step, and however often.

use tg_provenance::{
    Analysis, Asked, Chain, Compaction, Conclusion, Event, Finding, Numbered, Plan, Reason,
    Session, SessionFacts, StepResult, Usage as Used, analysis, compaction, conclusion,
    confirmation, decomposition, finding, hash_of, observation, pattern_decision, plan, session,
    step_result, synthesis, thought,
};
use tg_schemas::msg::{AgentRun, PlanStep};

use super::bounds;
use super::compacting::SUMMARISE;
use super::decision::{
    Compacted, Decision, Ending, Finding as Found, Observation, Taken, Usage, outcomes,
};
use super::guards::Rung;
use super::phase::{self, Phase};
use linked::{Linked, before_call};

mod linked;

/// What became of a text that was given to the library.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stored {
    /// The thought.
    pub thought: bool,
    /// The observation or the answer.
    pub text: bool,
}

/// Whether a router chose the pattern of a run.
fn is_routed(run: &AgentRun) -> bool {
    !run.pattern.is_empty() && !run.named
}

fn used(usage: &Usage) -> Used<'_> {
    let known = |count: i64| u64::try_from(count).ok().filter(|count| *count > 0);
    Used {
        duration_ms: Some(usage.duration_ms),
        in_token: known(usage.in_token),
        out_token: known(usage.out_token),
        model: Some(usage.model.as_str()).filter(|model| !model.is_empty()),
    }
}

/// What a step leaves behind, as far as it came.
#[derive(Debug, Clone, Copy, Default)]
pub struct Left<'a> {
    /// What was decided.
    pub decision: Option<&'a Decision>,
    /// What the tool returned.
    pub seen: Option<&'a Observation>,
    /// How the run ended here without an answer.
    pub ending: Option<&'a Ending>,
    /// How it was stopped here with the best that it had.
    pub stopped: Option<Stopped<'a>>,
}

/// The end of a run that was stopped.
#[derive(Debug, Clone, Copy)]
pub struct Stopped<'a> {
    /// Word for the trace.
    pub reason: Reason,
    /// Why, in one sentence.
    pub why: &'a str,
    /// Its answer.
    pub text: &'a str,
    /// Whether that is stored.
    pub stored: bool,
}

/// The entries of one step, chained to those of the step before.
#[derive(Debug, Clone, Copy)]
pub struct Entries<'a> {
    /// The run, which knows the hash of the entry before the step.
    pub run: &'a AgentRun,
    /// The step.
    pub step: u32,
    /// There is a library that takes the texts.
    pub library: bool,
}

impl Entries<'_> {
    /// All of them in the order of their chain: the session with the first step, the decision, its thought, the
    /// observation, or the thought and the conclusion that it led to.
    pub fn of(&self, left: &Left<'_>, stored: Stored) -> Vec<Event> {
        let id = &Session::new(&self.run.run);
        let mut linked = Linked {
            // A run that an earlier release began has no chain.
            chain: (self.step <= 1 || !self.run.chain.is_empty())
                .then(|| Chain::after(&self.run.chain)),
            library: self.library,
            events: Vec::with_capacity(4),
        };
        if self.step == 1 {
            let parent = Some(&self.run.parent).filter(|parent| !parent.is_empty());
            let parent = parent.map(|parent| match self.run.caller.as_str() {
                "" => Session::new(parent).decomposition(),
                caller => caller.to_owned(),
            });
            linked.add(session(id, &self.began(parent.as_deref())), None);
            if is_routed(self.run) {
                let decided = pattern_decision(id, &self.run.pattern, &self.run.task_type);
                linked.add(decided, None);
            }
        }
        if let Some(decision) = left.decision {
            match (&decision.taken, Phase::of(self.run)) {
                (Taken::Answer { .. }, _) => {
                    if left.ending.is_none() {
                        self.answered(id, decision, stored, &mut linked);
                    }
                }
                (Taken::Plan { steps, .. }, _) => self.planned(id, decision, steps, &mut linked),
                (Taken::Goals { goals }, _) => {
                    linked.add(decomposition(id, goals, &used(&decision.asked())), None);
                    let found = left.seen.map_or(&[][..], |seen| &seen.findings);
                    self.found(id, found, &id.decomposition(), &mut linked);
                }
                (_, Phase::Execute(at)) => {
                    if let Some(seen) = left.seen {
                        let from = Phase::Execute(at).gives_work(self.run, self.step);
                        self.found(id, &seen.findings, &from, &mut linked);
                    }
                    if let Some(seen) = left.seen.filter(|seen| seen.is_there()) {
                        self.steps(id, (at, decision), seen, stored, &mut linked);
                    }
                }
                (Taken::Actions { .. }, _) => {
                    self.several(id, decision, left.seen, stored, &mut linked);
                }
                _ => {
                    self.chose(id, decision, stored, &mut linked);
                    if let Some(seen) = left.seen {
                        let from = id.iteration(self.step);
                        self.found(id, &seen.findings, &from, &mut linked);
                    }
                    if let Some(seen) = left.seen.filter(|seen| seen.is_there()) {
                        self.returned(id, (0, decision), seen, stored, &mut linked);
                    }
                }
            }
        }
        if let Some(ending) = left.ending {
            linked.add(self.ended(id, left, ending), None);
        }
        if let Some(stopped) = left.stopped {
            let entry = self.stopped(id, left, &stopped);
            linked.add(entry, Some(stopped.text));
        }
        linked.events
    }

    /// The entries that a run begins with: the session's, and that of the router's choice.
    pub fn session(&self) -> Vec<Event> {
        self.of(&Left::default(), Stored::default())
    }

    /// How many of those there are before the first step.
    pub fn opening(run: &AgentRun) -> u64 {
        1 + u64::from(is_routed(run))
    }

    /// The hash of the last entry of some.
    pub fn head(events: &[Event]) -> String {
        let last = events.last();
        let hash = last.and_then(|last| hash_of(&last.id, &last.triples));
        hash.unwrap_or_default().to_owned()
    }

    fn began<'a>(&'a self, parent: Option<&'a str>) -> SessionFacts<'a> {
        SessionFacts {
            question: &self.run.question,
            started_at: &self.run.started_at,
            parent,
        }
    }

    /// A tool was chosen; its thought is an entry of its own.
    fn chose(&self, id: &Session, decision: &Decision, stored: Stored, linked: &mut Linked) {
        let (action, arguments) = decision.action();
        let reflected = decision.thought_text();
        // What a summary took stands with the summary.
        let asked = decision.asked();
        let chosen = Analysis {
            has_thought: !reflected.is_empty(),
            candidates: &decision.candidates,
            usage: used(&asked),
            ..self.chosen(None, &action, &arguments)
        };
        let before = phase::before(self.run, self.step);
        let chosen = Analysis {
            after: Some(&before),
            ..chosen
        };
        linked.add(analysis(id, &chosen), None);
        self.reasoned(id, decision, stored, linked);
    }

    fn chosen<'a>(&self, nth: Option<u32>, action: &'a str, arguments: &'a str) -> Analysis<'a> {
        Analysis {
            step: self.step,
            nth,
            after: None,
            action,
            arguments,
            candidates: &[],
            usage: Used::default(),
            has_thought: false,
        }
    }

    /// Several tools were chosen at once: each is an entry of its own that follows from what was before, and the thought that led
    /// to them stands with the first. What they returned follows in their order.
    fn several(
        &self,
        id: &Session,
        decision: &Decision,
        seen: Option<&Observation>,
        stored: Stored,
        linked: &mut Linked,
    ) {
        let before = phase::before(self.run, self.step);
        let apart = decision.apart();
        let asked = decision.asked();
        for (nth, one) in (0..).zip(&apart) {
            let (action, arguments) = one.action();
            let mut chosen = Analysis {
                after: Some(&before),
                ..self.chosen(Some(nth), &action, &arguments)
            };
            if nth == 0 {
                chosen.has_thought = !decision.thought_text().is_empty();
                chosen.candidates = &decision.candidates;
                chosen.usage = used(&asked);
            }
            linked.add(analysis(id, &chosen), None);
            if nth == 0 {
                let guard = one.guard.clone();
                let first = Decision {
                    guard,
                    ..decision.clone()
                };
                self.reasoned(id, &first, stored, linked);
            } else if let Some(guard) = &one.guard {
                linked.guarded(&id.call(self.step, nth), guard, before_call(guard));
            }
        }
        let seen = seen.filter(|seen| seen.is_there());
        let seen = seen.map_or(&[][..], |seen| &seen.calls);
        for ((nth, one), seen) in (0..).zip(&apart).zip(seen) {
            let stored = self.stored_of(nth, seen, stored);
            self.returned(id, (nth, one), seen, stored, linked);
        }
    }

    /// What became of the text of one of several calls: all but the first are stored before it is known that the step saw them.
    fn stored_of(&self, nth: u32, seen: &Observation, stored: Stored) -> Stored {
        match nth {
            0 => stored,
            _ => Stored {
                text: self.library && !seen.text.is_empty(),
                ..stored
            },
        }
    }

    /// What led to a choice: the thought, what a guard said of it, and what was summed up before.
    fn reasoned(&self, id: &Session, decision: &Decision, stored: Stored, linked: &mut Linked) {
        let reflected = decision.thought_text();
        if !reflected.is_empty() {
            let from = id.iteration(self.step);
            let entry = thought(id, self.step, &from, stored.thought);
            linked.add(entry, Some(&reflected));
        }
        if let Some(guard) = &decision.guard {
            linked.guarded(&id.iteration(self.step), guard, before_call(guard));
        }
        if let Some(compacted) = &decision.compacted {
            let about = id.iteration(self.step);
            linked.add(self.compacted(id, compacted, &about), None);
        }
    }

    /// Earlier steps were summed up before the step was decided.
    fn compacted(&self, id: &Session, compacted: &Compacted, about: &str) -> Event {
        let prior = self.run.prior.max(0);
        let own = usize::try_from(compacted.steps - prior).unwrap_or(0);
        let steps = (1..).zip(bounds::own_steps(self.run)).take(own);
        let of: Vec<String> = steps
            .flat_map(|(step, made)| {
                let calls = u32::try_from(made.calls.len()).unwrap_or(0).max(1);
                (0..calls).map(move |nth| (step, nth))
            })
            .map(|(step, nth)| id.observation_of(step, nth))
            .collect();
        compaction(&Compaction {
            about,
            tier: compacted.tier.as_str(),
            text: &compacted.text,
            of: &of,
            steps: u64::try_from(compacted.steps).unwrap_or(0),
            tokens: (compacted.before, compacted.after),
            prompt: SUMMARISE,
            usage: used(&compacted.usage),
        })
    }

    /// What came of a call: that the user was asked, what it returned, and what a guard said of that.
    fn returned(
        &self,
        id: &Session,
        (nth, one): (u32, &Decision),
        seen: &Observation,
        stored: Stored,
        linked: &mut Linked,
    ) {
        self.asked(id, (nth, one), seen, linked);
        self.saw(id, nth, seen, stored, linked);
        self.told(id, (nth, one), seen, linked);
    }

    /// The user was asked before the tool was used.
    fn asked(
        &self,
        id: &Session,
        (nth, decision): (u32, &Decision),
        seen: &Observation,
        linked: &mut Linked,
    ) {
        let Some(confirmed) = &seen.confirmed else {
            return;
        };
        let phase = Phase::of(self.run);
        let about = phase.caller_of(id, self.step, (nth, decision.place));
        let facts = Asked {
            id: &id.confirmation(self.step, nth),
            about: &about,
            answer: confirmed.answer.as_str(),
            by: &confirmed.by,
            tool: &decision.action_name(),
        };
        linked.add(confirmation(&facts), None);
    }

    /// The tool returned or failed. What it left behind itself is another chain, which ends here.
    fn saw(&self, id: &Session, nth: u32, seen: &Observation, stored: Stored, linked: &mut Linked) {
        let last = seen.trace.last();
        let entry = observation(
            id,
            &tg_provenance::Observation {
                step: self.step,
                nth,
                sub_trace: last.map(|entry| entry.id.as_str()),
                duration_ms: Some(seen.duration_ms),
                error: seen.error.as_deref(),
                stored: stored.text,
            },
        );
        let other = last.and_then(|last| hash_of(&last.id, &last.triples));
        linked.join(entry, Some(&seen.text), other);
    }

    /// What a guard did about what the tool returned: it warned and told the model, or stopped the run.
    fn told(
        &self,
        id: &Session,
        (nth, decision): (u32, &Decision),
        seen: &Observation,
        linked: &mut Linked,
    ) {
        let Some(guard) = &seen.guard else {
            return;
        };
        let warned = decision.guard.as_ref();
        let rungs: &[Rung] = match guard.rung {
            Rung::Stop => &[Rung::Stop],
            Rung::Tell if warned.is_some_and(|warned| warned.key == guard.key) => &[Rung::Tell],
            Rung::Tell => &[Rung::Warn, Rung::Tell],
            Rung::Warn | Rung::Block => &[],
        };
        linked.guarded(&id.observation_of(self.step, nth), guard, rungs);
    }

    /// The steps were planned, or planned anew.
    fn planned(&self, id: &Session, decision: &Decision, steps: &[PlanStep], linked: &mut Linked) {
        let goals: Vec<String> = steps.iter().map(|step| step.goal.clone()).collect();
        let first = self.run.plan.is_empty();
        let before = phase::before(self.run, self.step);
        let asked = decision.asked();
        let facts = Plan {
            revision: self.revision(),
            goals: &goals,
            after: (!first).then_some(before.as_str()),
            usage: used(&asked),
        };
        linked.add(plan(id, &facts), None);
    }

    /// Subagents ended, each with a trace of its own.
    fn found(&self, id: &Session, findings: &[Found], from: &str, linked: &mut Linked) {
        let before = usize::try_from(self.run.findings).unwrap_or(0);
        for (number, found) in (before..).zip(findings) {
            let end = Session::new(&found.run).conclusion();
            let facts = Finding {
                number,
                goal: &found.goal,
                from,
                end: (!found.head.is_empty()).then_some(end.as_str()),
                error: found.error.as_deref(),
                stored: self.library && !found.text.is_empty(),
            };
            let other = Some(found.head.as_str()).filter(|head| !head.is_empty());
            linked.join(finding(id, &facts), Some(&found.text), other);
        }
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
            let usage = match nth {
                0 => used(&took),
                _ => Used::default(),
            };
            let at = one.place.unwrap_or(at);
            self.asked(id, (nth, &one), seen, linked);
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

    /// The run ended with an answer, after the thought that led to it, if there is one.
    fn answered(&self, id: &Session, decision: &Decision, stored: Stored, linked: &mut Linked) {
        let Taken::Answer { text } = &decision.taken else {
            return;
        };
        let phase = Phase::of(self.run);
        let reflected = decision.thought_text();
        let has_thought = phase.is_react() && !reflected.is_empty();
        if has_thought {
            let entry = thought(id, self.step, &id.conclusion(), stored.thought);
            linked.add(entry, Some(&reflected));
        }
        if let Some(compacted) = &decision.compacted {
            let about = phase::before(self.run, self.step);
            linked.add(self.compacted(id, compacted, &about), None);
        }
        let cites: Vec<_> = decision.citations.iter().map(Numbered::from).collect();
        let asked = decision.asked();
        let facts = Conclusion {
            reason: phase.reason(),
            answered: true,
            derived_from: &phase::before(self.run, self.step),
            usage: used(&asked),
            stored: stored.text,
            thought_of: has_thought.then_some(self.step),
            error: None,
            cites: &cites,
            refused: decision.refused,
        };
        let entry = match phase {
            Phase::Conclude => synthesis(id, &facts, &[]),
            Phase::Merge => {
                let count = self.run.plan.len();
                let found: Vec<String> = (0..count).map(|number| id.finding(number)).collect();
                synthesis(id, &facts, &found)
            }
            _ => conclusion(id, &facts),
        };
        linked.add(entry, Some(text));
    }

    /// What the end of a run follows from that ended in this step without the model's answer.
    fn last(&self, id: &Session, left: &Left<'_>) -> String {
        match (
            left.decision.map(|decision| &decision.taken),
            Phase::of(self.run),
        ) {
            (Some(Taken::Plan { .. }), _) => id.plan(self.revision()),
            (Some(Taken::Goals { .. }), _) => id.decomposition(),
            (Some(Taken::Answer { .. }) | None, _) => phase::before(self.run, self.step),
            (Some(_), Phase::Execute(at)) if has_returned(left) => {
                let calls = left.decision.zip(left.seen);
                let calls = calls.map(|(decision, seen)| outcomes(decision, seen));
                let last = calls.and_then(|calls| calls.last()?.1.place);
                id.step_result(last.unwrap_or(at))
            }
            (Some(_), Phase::Execute(_)) => phase::before(self.run, self.step),
            (Some(_), _) if has_returned(left) => {
                let calls = left.seen.map_or(0, |seen| seen.calls.len());
                let last = u32::try_from(calls.saturating_sub(1)).unwrap_or(0);
                id.observation_of(self.step, last)
            }
            (Some(_), _) => id.iteration(self.step),
        }
    }

    /// The run was stopped with the best that it had.
    fn stopped(&self, id: &Session, left: &Left<'_>, stopped: &Stopped<'_>) -> Event {
        let from = self.last(id, left);
        conclusion(
            id,
            &Conclusion {
                reason: stopped.reason,
                answered: true,
                derived_from: &from,
                usage: Used::default(),
                stored: stopped.stored,
                thought_of: None,
                error: Some(stopped.why),
                cites: &[],
                refused: false,
            },
        )
    }

    /// The run ended without an answer.
    fn ended(&self, id: &Session, left: &Left<'_>, ending: &Ending) -> Event {
        let from = self.last(id, left);
        conclusion(
            id,
            &Conclusion {
                reason: ending.reason(),
                answered: false,
                derived_from: &from,
                usage: Used::default(),
                stored: false,
                thought_of: None,
                error: Some(&ending.message),
                cites: &[],
                refused: false,
            },
        )
    }
}

fn has_returned(left: &Left<'_>) -> bool {
    left.seen.is_some_and(Observation::is_there)
}
