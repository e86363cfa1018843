//! The entries of a run's trace, as functions of the run and its rows.

use tg_provenance::{
    Analysis, Conclusion, Event, Numbered, Reason, Session, SessionFacts, Usage as Used, analysis,
    conclusion, observation, session, thought,
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

/// The run began.
pub fn began(id: &Session, run: &AgentRun) -> Event {
    session(
        id,
        &SessionFacts {
            question: &run.question,
            started_at: &run.started_at,
            parent: None,
        },
    )
}

/// A tool was chosen; its thought is an entry of its own.
pub fn chose(id: &Session, step: u32, decision: &Decision, stored: Stored) -> Vec<Event> {
    let (action, arguments) = decision.action();
    let has_thought = !decision.thought_text().is_empty();
    let mut events = vec![analysis(
        id,
        &Analysis {
            step,
            action,
            arguments: &arguments,
            candidates: &decision.candidates,
            usage: used(&decision.usage),
            has_thought,
        },
    )];
    if has_thought {
        events.push(thought(id, step, &id.iteration(step), stored.thought));
    }
    events
}

/// The tool returned or failed.
pub fn saw(id: &Session, step: u32, seen: &Observation, stored: Stored) -> Event {
    observation(
        id,
        &tg_provenance::Observation {
            step,
            sub_trace: seen.trace.last().map(|entry| entry.id.as_str()),
            duration_ms: Some(seen.duration_ms),
            error: seen.error.as_deref(),
            stored: stored.text,
        },
    )
}

/// What a run's end follows from.
fn before(id: &Session, step: u32) -> String {
    match step {
        0 | 1 => id.iri().to_owned(),
        step => id.observation(step - 1),
    }
}

/// The run ended with an answer. The second event, if any, is the thought that led to it.
pub fn answered(id: &Session, step: u32, decision: &Decision, stored: Stored) -> Vec<Event> {
    let has_thought = !decision.thought_text().is_empty();
    let mut events = vec![conclusion(
        id,
        &Conclusion {
            reason: Reason::FinalAnswer,
            derived_from: &before(id, step),
            usage: used(&decision.usage),
            stored: stored.text,
            thought_of: has_thought.then_some(step),
            error: None,
            cites: &decision
                .citations
                .iter()
                .map(Numbered::from)
                .collect::<Vec<_>>(),
            refused: decision.refused,
        },
    )];
    if has_thought {
        events.push(thought(id, step, &id.conclusion(), stored.thought));
    }
    events
}

/// The run ended without an answer.
pub fn ended(
    id: &Session,
    step: u32,
    decision: Option<&Decision>,
    seen: Option<&Observation>,
    ending: &Ending,
) -> Event {
    let acted = decision.is_some_and(|decision| !matches!(decision.taken, Taken::Answer { .. }));
    let from = match (acted, seen) {
        (true, Some(_)) => id.observation(step),
        (true, None) => id.iteration(step),
        (false, _) => before(id, step),
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
