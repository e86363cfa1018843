//! The events of a ReAct run.
//!
//! The thought is an event of its own: a reader that takes all types of one explain chunk together
//! would otherwise mistake the decision for a reflection.

pub use crate::build::Usage;
use crate::build::{Description, Event};
use crate::citation::{Numbered, with_citations};
use crate::iri::Session;
use tg_schemas::vocabulary::{prov, rdfs, tg};

/// What is known when a run begins.
#[derive(Debug, Clone, Copy)]
pub struct SessionFacts<'a> {
    /// The question as asked.
    pub question: &'a str,
    /// When it began: UTC, ISO 8601 with microseconds and `Z`.
    pub started_at: &'a str,
    /// What it belongs to, if it is part of other work.
    pub parent: Option<&'a str>,
}

/// A decision to use a tool.
#[derive(Debug, Clone, Copy)]
pub struct Analysis<'a> {
    /// Number of the step, from 1.
    pub step: u32,
    /// Which of its calls, from 0, of a step that makes several side by side; `None`: it makes one.
    pub nth: Option<u32>,
    /// What it follows from; `None`: the observation before it, the first from the session itself.
    pub after: Option<&'a str>,
    /// Tool chosen.
    pub action: &'a str,
    /// Its arguments as JSON text.
    pub arguments: &'a str,
    /// Tools that could be chosen.
    pub candidates: &'a [String],
    /// What the decision took.
    pub usage: Usage<'a>,
    /// Whether the step has a thought, described by [`thought`].
    pub has_thought: bool,
}

/// What a tool returned.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    /// Number of the step, from 1.
    pub step: u32,
    /// Which of its calls, from 0.
    pub nth: u32,
    /// The last entity of a trace that the tool itself left, if any.
    pub sub_trace: Option<&'a str>,
    /// How long the tool took.
    pub duration_ms: Option<u64>,
    /// What the tool's own calls of models took, if no other entity says it.
    pub usage: Usage<'a>,
    /// What the tool's failure said.
    pub error: Option<&'a str>,
    /// Whether the text is stored.
    pub stored: bool,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// With an answer.
    FinalAnswer,
    /// With the best that there was: its calls led nowhere.
    Loop,
    /// With an answer, put together from what the steps of a plan found.
    PlanComplete,
    /// With an answer, put together from what subagents found.
    SubagentsComplete,
    /// With the best that there was: the next call did not fit its budget.
    Budget,
    /// After the last step allowed: an agent that was given work has the best that there was, any other run has no answer.
    MaxIterations,
    /// Something failed.
    Error,
    /// The asker gave up, or the deadline passed.
    Cancelled,
    /// It broke off where it could not be continued in the same words.
    Interrupted,
}

impl Reason {
    /// The literal in the trace.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FinalAnswer => "final-answer",
            Self::Loop => "loop",
            Self::PlanComplete => "plan-complete",
            Self::SubagentsComplete => "subagents-complete",
            Self::Budget => "budget",
            Self::MaxIterations => "max-iterations",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The end of a run.
#[derive(Debug, Clone, Copy)]
pub struct Conclusion<'a> {
    /// Why.
    pub reason: Reason,
    /// Whether the run has an answer, if not always the one that was wanted.
    pub answered: bool,
    /// IRI of what came before: the last observation or decision, else the session.
    pub derived_from: &'a str,
    /// What the model calls of the last step took.
    pub usage: Usage<'a>,
    /// Whether the answer is stored.
    pub stored: bool,
    /// Step whose thought led here, described by [`thought`].
    pub thought_of: Option<u32>,
    /// What went wrong, or why it was stopped.
    pub error: Option<&'a str>,
    /// What the answer cites, the first by number 1.
    pub cites: &'a [Numbered],
    /// The answer is that there is none.
    pub refused: bool,
}

/// The thread of listeners on which an agent was asked, by ids that show none of its names.
#[derive(Debug, Clone, Copy)]
pub struct Thread<'a> {
    /// The thread.
    pub id: &'a str,
    /// That of the listener that asked, if there is one.
    pub parent: Option<&'a str>,
}

/// A run begins.
pub fn session(session: &Session, facts: &SessionFacts<'_>) -> Event {
    begun(session, facts).done()
}

/// A run begins that a listener asked for.
pub fn session_on_thread(
    session: &Session,
    facts: &SessionFacts<'_>,
    thread: &Thread<'_>,
) -> Event {
    begun(session, facts)
        .text(tg::THREAD, thread.id)
        .text_if(tg::PARENT_THREAD, thread.parent)
        .done()
}

fn begun(session: &Session, facts: &SessionFacts<'_>) -> Description {
    Description::of(session.iri())
        .entity(&[tg::QUESTION, tg::AGENT_QUESTION])
        .label("Agent Question")
        .text(prov::STARTED_AT_TIME, facts.started_at)
        .text(tg::QUERY, facts.question)
        .link_if(prov::WAS_DERIVED_FROM, facts.parent)
}

/// The router chose a pattern for a task of some type. Nothing follows from it: readers of traces walk from the session
/// and stop at what they do not know.
pub fn pattern_decision(
    session: &Session,
    pattern: &str,
    task_type: &str,
    usage: &Usage<'_>,
) -> Event {
    Description::of(session.pattern_decision())
        .entity(&[tg::PATTERN_DECISION])
        .label(format!("Pattern: {pattern}"))
        .text(tg::PATTERN, pattern)
        .text_if(
            tg::TASK_TYPE,
            Some(task_type).filter(|kind| !kind.is_empty()),
        )
        .used(usage)
        .derived_from(session.iri())
        .done()
}

/// The model chose a tool. Follows from the observation before it, the first from the session itself; as does each of several
/// tools that it chose at once.
pub fn analysis(session: &Session, facts: &Analysis<'_>) -> Event {
    let from = match (facts.after, facts.step) {
        (Some(after), _) => after.to_owned(),
        (None, 0 | 1) => session.iri().to_owned(),
        (None, step) => session.observation(step - 1),
    };
    let mut about = Description::of(session.call(facts.step, facts.nth.unwrap_or(0)))
        .entity(&[tg::ANALYSIS, tg::TOOL_USE])
        .label(format!("Analysis: {}", facts.action))
        .text(tg::ACTION, facts.action)
        .text(tg::ARGUMENTS, facts.arguments);
    for candidate in facts.candidates {
        about = about.text(tg::TOOL_CANDIDATE, candidate.as_str());
    }
    about = about.number(tg::STEP_NUMBER, Some(u64::from(facts.step)));
    about = about.number(tg::CALL_NUMBER, facts.nth.map(|nth| u64::from(nth) + 1));
    about = about.used(&facts.usage).derived_from(&from);
    if facts.has_thought {
        about = about.link(tg::THOUGHT, &session.thought(facts.step));
    }
    about.done()
}

/// The thought of a step, derived from the decision or conclusion it led to.
pub fn thought(session: &Session, step: u32, derived_from: &str, stored: bool) -> Event {
    let id = session.thought(step);
    Description::of(id.as_str())
        .classes(&[tg::REFLECTION, tg::THOUGHT_CLASS])
        .label("Thought")
        .derived_from(derived_from)
        .link_if(tg::DOCUMENT, stored.then_some(id.as_str()))
        .done()
}

/// The tool returned, or failed.
pub fn observation(session: &Session, facts: &Observation<'_>) -> Event {
    let id = session.observation_of(facts.step, facts.nth);
    let analysis = session.call(facts.step, facts.nth);
    let mut about = Description::of(id.as_str())
        .entity(&[tg::OBSERVATION])
        .label("Observation")
        .derived_from(facts.sub_trace.unwrap_or(&analysis))
        .link_if(tg::DOCUMENT, facts.stored.then_some(id.as_str()))
        .number(tg::TOOL_DURATION_MS, facts.duration_ms)
        .used(&facts.usage);
    if let Some(error) = facts.error {
        about = about.classes(&[tg::ERROR]).text(tg::TOOL_ERROR, error);
    }
    about.done()
}

/// The run ended, in whatever way.
pub fn conclusion(session: &Session, facts: &Conclusion<'_>) -> Event {
    let document = session.answer_document();
    let classes: &[&str] = if facts.answered {
        &[tg::CONCLUSION, tg::ANSWER]
    } else {
        &[tg::CONCLUSION, tg::ERROR]
    };
    let mut about = Description::of(session.conclusion())
        .entity(classes)
        .label("Conclusion")
        .derived_from(facts.derived_from)
        .link_if(
            tg::DOCUMENT,
            (facts.answered && facts.stored).then_some(document.as_str()),
        )
        .text(tg::TERMINATION_REASON, facts.reason.as_str());
    if let Some(step) = facts.thought_of {
        about = about.link(tg::THOUGHT, &session.thought(step));
    }
    if let Some(error) = facts.error {
        about = about.text(rdfs::COMMENT, error);
    }
    let name = |number| session.citation(number);
    with_citations(about, name, facts.cites, facts.refused, &facts.usage)
}

#[cfg(test)]
mod tests;
