//! ReAct: the model thinks, and uses a tool or several, or answers. Each step shows it what all before it saw.

use tg_provenance::{Analysis, Session, Usage as Used, analysis, hash_of, observation, thought};
use tg_schemas::msg::{AgentRun, AgentRunStep};

use crate::engine::bounds;
use crate::engine::decision::{Decision, Observation, Taken};
use crate::engine::guards::Rung;
use crate::engine::linked::{Linked, before_call};
use crate::engine::pattern::{Decided, Done, Pattern};
use crate::engine::phase::Phase;
use crate::engine::trace::{Entries, Left, Stored, used, used_by_tool};

/// See the module.
pub(super) struct React;

impl Pattern for React {
    fn next(&self, _: &AgentRun) -> Phase {
        Phase::React
    }

    fn before(&self, run: &AgentRun, step: u32) -> String {
        let id = Session::new(&run.run);
        match step {
            0 | 1 => id.iri().to_owned(),
            step => id.observation_of(step - 1, bounds::last_call(run)),
        }
    }

    fn record(&self, next: &mut AgentRun, done: Done<'_>) {
        if let Some(compacted) = &done.decision.compacted {
            compacted.apply(next);
        }
        next.history.push(AgentRunStep {
            thought: done.decision.thought_text(),
            observation: (done.shown)(),
            ..done.step
        });
    }

    fn render(&self, of: &Entries<'_>, left: &Decided<'_>, linked: &mut Linked) {
        let id = &Session::new(&of.run.run);
        let Decided {
            decision,
            seen,
            stored,
            begun,
        } = *left;
        if matches!(decision.taken, Taken::Actions { .. }) {
            if !begun {
                of.chose_several(id, decision, stored, linked);
            }
            return of.saw_several(id, decision, left.returned(), stored, linked);
        }
        if !begun {
            of.chose(id, decision, stored, linked);
        }
        if let Some(seen) = seen {
            let from = id.iteration(of.step);
            of.found(id, &seen.findings, &from, linked);
        }
        if let Some(seen) = left.returned() {
            of.returned(id, (0, decision), seen, stored, linked);
        }
    }

    fn last(&self, of: &Entries<'_>, left: &Left<'_>) -> String {
        let id = Session::new(&of.run.run);
        match left.seen.filter(|seen| seen.is_there()) {
            Some(seen) => {
                let last = u32::try_from(seen.calls.len().saturating_sub(1)).unwrap_or(0);
                id.observation_of(of.step, last)
            }
            None => id.iteration(of.step),
        }
    }
}

impl Entries<'_> {
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
        let before = React.before(self.run, self.step);
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
    /// to them stands with the first.
    fn chose_several(
        &self,
        id: &Session,
        decision: &Decision,
        stored: Stored,
        linked: &mut Linked,
    ) {
        let before = React.before(self.run, self.step);
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
    }

    /// What several tools returned, in their order.
    fn saw_several(
        &self,
        id: &Session,
        decision: &Decision,
        seen: Option<&Observation>,
        stored: Stored,
        linked: &mut Linked,
    ) {
        let seen = seen.map_or(&[][..], |seen| &seen.calls);
        for ((nth, one), seen) in (0..).zip(&decision.apart()).zip(seen) {
            let stored = self.stored_of(nth, seen, stored);
            self.returned(id, (nth, one), seen, stored, linked);
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

    /// What came of a call: that the user was asked, what it returned, and what a guard said of that.
    fn returned(
        &self,
        id: &Session,
        (nth, one): (u32, &Decision),
        seen: &Observation,
        stored: Stored,
        linked: &mut Linked,
    ) {
        let about = match nth {
            0 => id.iteration(self.step),
            nth => id.call(self.step, nth),
        };
        self.asked(id, (nth, one, &about), seen, linked);
        self.saw(id, nth, seen, stored, linked);
        self.told(id, (nth, one), seen, linked);
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
                usage: used_by_tool(seen),
                error: seen.error.as_deref(),
                stored: stored.text,
            },
        );
        let other = last.and_then(|last| hash_of(&last.id, &last.triples));
        linked.join(entry, Some(&seen.text), other);
    }

    /// What a guard did after the call: it warned the model, or stopped the run.
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
}
