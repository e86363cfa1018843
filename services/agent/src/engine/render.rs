//! The entries of one step: those of its pattern, and those that all patterns have alike, the begin and the end of a run.

use tg_provenance::{
    Chain, Conclusion, Event, Numbered, Session, Usage as Used, conclusion, pattern_decision,
    session, synthesis, thought,
};

use super::decision::{Decision, Ending, Taken};
use super::linked::Linked;
use super::pattern::Decided;
use super::patterns;
use super::phase::Phase;
use super::trace::{Entries, Left, Stopped, Stored, is_routed, used, used_by_router};

impl Entries<'_> {
    /// All of them in the order of their chain: the session with the first step, the decision, its thought, the
    /// observation, or the thought and the conclusion that it led to.
    pub fn of(&self, left: &Left<'_>, stored: Stored) -> Vec<Event> {
        let id = &Session::new(&self.run.run);
        // A run that an earlier release began has no chain.
        let is_chained = self.step <= 1 || !self.run.chain.is_empty();
        let chain = is_chained.then(|| Chain::after(&self.run.chain));
        let mut linked = Linked::new(chain, self.library);
        if self.step == 1 {
            let parent = Some(&self.run.parent).filter(|parent| !parent.is_empty());
            let parent = parent.map(|parent| match self.run.caller.as_str() {
                "" => Session::new(parent).decomposition(),
                caller => caller.to_owned(),
            });
            linked.add(session(id, &self.began(parent.as_deref())), None);
            if is_routed(self.run) {
                let (pattern, task_type) = (&self.run.pattern, &self.run.task_type);
                let usage = used_by_router(self.run);
                linked.add(pattern_decision(id, pattern, task_type, &usage), None);
            }
        }
        if let Some(decision) = left.decision {
            let decided = Decided {
                decision,
                seen: left.seen,
                stored,
            };
            match decision.taken {
                Taken::Answer { .. } if left.ending.is_some() => {}
                Taken::Answer { .. } => self.answered(id, decision, stored, &mut linked),
                _ => patterns::of(self.run).render(self, &decided, &mut linked),
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

    /// The run ended with an answer, after the thought that led to it, if there is one.
    fn answered(&self, id: &Session, decision: &Decision, stored: Stored, linked: &mut Linked) {
        let Taken::Answer { text } = &decision.taken else {
            return;
        };
        let pattern = patterns::of(self.run);
        let phase = pattern.next(self.run);
        let reflected = decision.thought_text();
        let has_thought = phase.is_react() && !reflected.is_empty();
        if has_thought {
            let entry = thought(id, self.step, &id.conclusion(), stored.thought);
            linked.add(entry, Some(&reflected));
        }
        if let Some(compacted) = &decision.compacted {
            let about = pattern.before(self.run, self.step);
            linked.add(self.compacted(id, compacted, &about), None);
        }
        let cites: Vec<_> = decision.citations.iter().map(Numbered::from).collect();
        let asked = decision.asked();
        let facts = Conclusion {
            reason: phase.reason(),
            answered: true,
            derived_from: &pattern.before(self.run, self.step),
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
    fn last(&self, left: &Left<'_>) -> String {
        let pattern = patterns::of(self.run);
        match left.decision {
            Some(decision) if !decision.is_answer() => pattern.last(self, left),
            _ => pattern.before(self.run, self.step),
        }
    }

    /// The run was stopped with the best that it had.
    fn stopped(&self, id: &Session, left: &Left<'_>, stopped: &Stopped<'_>) -> Event {
        let from = self.last(left);
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
        let from = self.last(left);
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
