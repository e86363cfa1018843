//! The entries of one step: those of its pattern, and those that all patterns have alike, the begin and the end of a run.

use tg_provenance::{
    Chain, Conclusion, Event, Numbered, Session, Usage as Used, conclusion, pattern_decision,
    synthesis, thought,
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
        self.after(Vec::new(), left, stored)
    }

    /// The same; `begun` are those of the decision alone, made in the same way before it was known what came of it, or none.
    pub fn after(&self, begun: Vec<Event>, left: &Left<'_>, stored: Stored) -> Vec<Event> {
        let id = &Session::new(&self.run.run);
        // A run that an earlier release began has no chain.
        let is_chained = self.step <= 1 || !self.run.chain.is_empty();
        let is_begun = !begun.is_empty();
        let chain = is_chained.then(|| match is_begun {
            true => Chain::after(&Self::head(&begun)),
            false => Chain::after(&self.run.chain),
        });
        let mut linked = Linked::new(chain, self.library, begun);
        if self.step == 1 && !is_begun {
            let parent = Some(&self.run.parent).filter(|parent| !parent.is_empty());
            let parent = parent.map(|parent| match self.run.caller.as_str() {
                "" => Session::new(parent).decomposition(),
                caller => caller.to_owned(),
            });
            linked.add(self.began(id, parent.as_deref()), None);
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
                begun: is_begun,
            };
            match decision.taken {
                Taken::Answer { .. } if left.ending.is_some() || is_begun => {}
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

#[cfg(test)]
mod tests {
    use serde_json::Map;
    use tg_schemas::msg::AgentRun;

    use super::*;
    use crate::engine::decision::{Chosen, Finding, Observation};
    use crate::engine::phase::SUPERVISOR;

    fn choice(name: &str) -> Chosen {
        Chosen {
            name: name.to_owned(),
            ..Chosen::default()
        }
    }

    fn seen(text: &str) -> Observation {
        Observation {
            text: text.to_owned(),
            ..Observation::default()
        }
    }

    /// What each kind of choice leaves to go on from.
    fn steps() -> Vec<(&'static str, Taken, Observation)> {
        let one = Taken::Action {
            name: "a".to_owned(),
            arguments: Map::new(),
        };
        let unread = Taken::Unreadable {
            detail: "no action".to_owned(),
        };
        let calls = vec![choice("a"), choice("b")];
        let goals = vec!["x".to_owned()];
        let found = Finding {
            goal: "x".to_owned(),
            run: "other".to_owned(),
            text: "found".to_owned(),
            head: "h".to_owned(),
            ..Finding::default()
        };
        let several = Observation {
            calls: vec![seen("1"), seen("2")],
            ..seen("both")
        };
        let gathered = Observation {
            findings: vec![found],
            ..seen("all")
        };
        vec![
            ("", one, seen("1")),
            ("", unread, seen("failed")),
            ("", Taken::Actions { calls }, several),
            (SUPERVISOR, Taken::Goals { goals }, gathered),
        ]
    }

    #[test]
    fn entries_that_go_on_from_those_of_the_decision_are_the_same() {
        let stored = Stored {
            thought: true,
            text: true,
        };
        for (step, chain) in [(1, ""), (2, "before"), (2, "")] {
            for (pattern, taken, seen) in steps() {
                let run = AgentRun {
                    run: "r".to_owned(),
                    step: i64::from(step),
                    chain: chain.to_owned(),
                    pattern: pattern.to_owned(),
                    ..AgentRun::default()
                };
                let decision = Decision {
                    thought: vec!["why".to_owned()],
                    ..Decision::of(taken)
                };
                let entries = Entries {
                    run: &run,
                    step,
                    library: true,
                };
                let decided = Left {
                    decision: Some(&decision),
                    ..Left::default()
                };
                let all = Left {
                    seen: Some(&seen),
                    ..decided
                };
                let begun = entries.of(&decided, stored);
                let whole = entries.of(&all, stored);
                assert!(begun.len() < whole.len(), "{decision:?}");
                assert_eq!(entries.after(begun, &all, stored), whole);
            }
        }
    }
}
