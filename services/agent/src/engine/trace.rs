//! The entries of a run's trace, as functions of the run and its rows: the same rows have the same entries with the same
//! hashes, whoever takes the step, and however often.

use tg_provenance::{
    Analysis, Chain, Conclusion, Event, Numbered, Reason, Session, SessionFacts, Usage as Used,
    analysis, conclusion, hash_of, observation, session, thought,
};
use tg_schemas::msg::AgentRun;

use super::decision::{Decision, Ending, Observation, Taken, Usage};

/// What became of a text that was given to the library.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stored {
    /// The thought.
    pub thought: bool,
    /// The observation or the answer.
    pub text: bool,
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
            linked.add(session(id, &self.began()), None);
        }
        let answers = |decision: &Decision| matches!(decision.taken, Taken::Answer { .. });
        match left.decision {
            Some(decision) if answers(decision) && left.ending.is_none() => {
                self.answered(id, decision, stored, &mut linked);
            }
            Some(decision) if !answers(decision) => {
                self.chose(id, decision, stored, &mut linked);
                if let Some(seen) = left.seen {
                    self.saw(id, seen, stored, &mut linked);
                }
            }
            _ => {}
        }
        if let Some(ending) = left.ending {
            linked.add(self.ended(id, left, ending), None);
        }
        linked.events
    }

    /// The session's entry by itself.
    pub fn session(&self) -> Vec<Event> {
        self.of(&Left::default(), Stored::default())
    }

    /// The hash of the last entry of some.
    pub fn head(events: &[Event]) -> String {
        let last = events.last();
        let hash = last.and_then(|last| hash_of(&last.id, &last.triples));
        hash.unwrap_or_default().to_owned()
    }

    fn began(&self) -> SessionFacts<'_> {
        SessionFacts {
            question: &self.run.question,
            started_at: &self.run.started_at,
            parent: None,
        }
    }

    /// A tool was chosen; its thought is an entry of its own.
    fn chose(&self, id: &Session, decision: &Decision, stored: Stored, linked: &mut Linked) {
        let (action, arguments) = decision.action();
        let reflected = decision.thought_text();
        let chosen = Analysis {
            step: self.step,
            action,
            arguments: &arguments,
            candidates: &decision.candidates,
            usage: used(&decision.usage),
            has_thought: !reflected.is_empty(),
        };
        linked.add(analysis(id, &chosen), None);
        if !reflected.is_empty() {
            let from = id.iteration(self.step);
            let entry = thought(id, self.step, &from, stored.thought);
            linked.add(entry, Some(&reflected));
        }
    }

    /// The tool returned or failed. What it left behind itself is another chain, which ends here.
    fn saw(&self, id: &Session, seen: &Observation, stored: Stored, linked: &mut Linked) {
        let last = seen.trace.last();
        let entry = observation(
            id,
            &tg_provenance::Observation {
                step: self.step,
                sub_trace: last.map(|entry| entry.id.as_str()),
                duration_ms: Some(seen.duration_ms),
                error: seen.error.as_deref(),
                stored: stored.text,
            },
        );
        let other = last.and_then(|last| hash_of(&last.id, &last.triples));
        linked.join(entry, Some(&seen.text), other);
    }

    /// What a run's end follows from.
    fn before(&self, id: &Session) -> String {
        match self.step {
            0 | 1 => id.iri().to_owned(),
            step => id.observation(step - 1),
        }
    }

    /// The run ended with an answer, after the thought that led to it, if there is one.
    fn answered(&self, id: &Session, decision: &Decision, stored: Stored, linked: &mut Linked) {
        let Taken::Answer { text } = &decision.taken else {
            return;
        };
        let reflected = decision.thought_text();
        let has_thought = !reflected.is_empty();
        if has_thought {
            let entry = thought(id, self.step, &id.conclusion(), stored.thought);
            linked.add(entry, Some(&reflected));
        }
        let cites: Vec<_> = decision.citations.iter().map(Numbered::from).collect();
        let entry = conclusion(
            id,
            &Conclusion {
                reason: Reason::FinalAnswer,
                derived_from: &self.before(id),
                usage: used(&decision.usage),
                stored: stored.text,
                thought_of: has_thought.then_some(self.step),
                error: None,
                cites: &cites,
                refused: decision.refused,
            },
        );
        linked.add(entry, Some(text));
    }

    /// The run ended without an answer.
    fn ended(&self, id: &Session, left: &Left<'_>, ending: &Ending) -> Event {
        let decision = left.decision;
        let acted =
            decision.is_some_and(|decision| !matches!(decision.taken, Taken::Answer { .. }));
        let from = match (acted, left.seen) {
            (true, Some(_)) => id.observation(self.step),
            (true, None) => id.iteration(self.step),
            (false, _) => self.before(id),
        };
        conclusion(
            id,
            &Conclusion {
                reason: ending.reason(),
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

/// Entries as they are chained.
struct Linked {
    chain: Option<Chain>,
    library: bool,
    events: Vec<Event>,
}

impl Linked {
    fn add(&mut self, event: Event, text: Option<&str>) {
        self.join(event, text, None);
    }

    fn join(&mut self, event: Event, text: Option<&str>, other: Option<&str>) {
        // One that is empty is not stored.
        let text = text.filter(|text| self.library && !text.is_empty());
        self.events.push(match &mut self.chain {
            Some(chain) => chain.join(event, text, other),
            None => event,
        });
    }
}
