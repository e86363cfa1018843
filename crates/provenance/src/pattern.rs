//! The events of runs that plan ahead, or split their question among subagents.
//!
//! Readers of traces walk from the session by what was derived from what, each entity once: so a plan and a decomposition are
//! derived from the session itself, a finding also from the decomposition, or the choice of the tool that called the subagent, and a synthesis from one entity alone.

use tg_schemas::vocabulary::{prov, rdfs, tg};

use crate::build::{Description, Event, Usage};
use crate::citation::with_citations;
use crate::iri::Session;
use crate::react::Conclusion;

/// Characters of a goal in a label.
const LABEL: usize = 60;

/// A plan.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// How many plans of the run were revised before.
    pub revision: usize,
    /// What each step is to find out, in order.
    pub goals: &'a [String],
    /// What made a revision necessary; `None`: it is the first plan.
    pub after: Option<&'a str>,
    /// What the planning took.
    pub usage: Usage<'a>,
}

/// What came of a step of a plan.
#[derive(Debug, Clone, Copy)]
pub struct StepResult<'a> {
    /// Its number, from 0 over all plans of the run.
    pub number: usize,
    /// Revision of the plan that it belongs to.
    pub revision: usize,
    /// What it was to find out.
    pub goal: &'a str,
    /// Tool that was used.
    pub action: &'a str,
    /// Its arguments as JSON text.
    pub arguments: &'a str,
    /// What choosing the tool took, with the tool's own calls of models if no other entity says what they took.
    pub usage: Usage<'a>,
    /// How long the tool took.
    pub duration_ms: Option<u64>,
    /// What the tool's failure said.
    pub error: Option<&'a str>,
    /// Whether the text is stored.
    pub stored: bool,
}

/// What a subagent found.
#[derive(Debug, Clone, Copy)]
pub struct Finding<'a> {
    /// Its number, from 0 in the order of arrival.
    pub number: usize,
    /// What it was to find out.
    pub goal: &'a str,
    /// IRI of what the subagent was called by: the split of the question, or the choice of a tool.
    pub from: &'a str,
    /// IRI of the end of the subagent's run, if it came to one.
    pub end: Option<&'a str>,
    /// What the subagent took, if it has no trace that says it.
    pub usage: Usage<'a>,
    /// Why there is nothing.
    pub error: Option<&'a str>,
    /// Whether the text is stored.
    pub stored: bool,
}

fn short(goal: &str) -> String {
    goal.chars().take(LABEL).collect()
}

/// The model planned its steps, or planned what is left anew.
pub fn plan(session: &Session, facts: &Plan<'_>) -> Event {
    let about = Description::of(session.plan(facts.revision))
        .entity(&[tg::PLAN])
        .label(format!("Plan with {} steps", facts.goals.len()));
    let goals = facts.goals.iter();
    goals
        .fold(about, |about, goal| about.text(tg::PLAN_STEP, goal))
        .used(&facts.usage)
        .derived_from(facts.after.unwrap_or(session.iri()))
        .done()
}

/// A step of a plan was taken.
pub fn step_result(session: &Session, facts: &StepResult<'_>) -> Event {
    let document = session.step_document(facts.number);
    let mut about = Description::of(session.step_result(facts.number))
        .entity(&[tg::STEP_RESULT, tg::ANSWER])
        .label(format!("Step result: {}", short(facts.goal)))
        .text(tg::PLAN_STEP, facts.goal)
        .text(tg::ACTION, facts.action)
        .text(tg::ARGUMENTS, facts.arguments)
        .link_if(tg::DOCUMENT, facts.stored.then_some(document.as_str()))
        .number(tg::TOOL_DURATION_MS, facts.duration_ms)
        .used(&facts.usage)
        .derived_from(&session.plan(facts.revision));
    if let Some(error) = facts.error {
        about = about.classes(&[tg::ERROR]).text(tg::TOOL_ERROR, error);
    }
    about.done()
}

/// The model split its question.
pub fn decomposition(session: &Session, goals: &[String], usage: &Usage<'_>) -> Event {
    let about = Description::of(session.decomposition())
        .entity(&[tg::DECOMPOSITION])
        .label(format!("Decomposed into {} research threads", goals.len()));
    let goals = goals.iter();
    goals
        .fold(about, |about, goal| about.text(tg::SUBAGENT_GOAL, goal))
        .used(usage)
        .derived_from(session.iri())
        .done()
}

/// A subagent ended.
pub fn finding(session: &Session, facts: &Finding<'_>) -> Event {
    let document = session.finding_document(facts.number);
    let mut about = Description::of(session.finding(facts.number))
        .entity(&[tg::FINDING, tg::ANSWER])
        .label(format!("Finding: {}", short(facts.goal)))
        .text(tg::SUBAGENT_GOAL, facts.goal)
        .link_if(tg::DOCUMENT, facts.stored.then_some(document.as_str()))
        .used(&facts.usage)
        .link_if(prov::WAS_DERIVED_FROM, facts.end)
        .derived_from(facts.from);
    if let Some(error) = facts.error {
        about = about.classes(&[tg::ERROR]).text(rdfs::COMMENT, error);
    }
    about.done()
}

/// The run ended with an answer from what was found. `rests_on` is what it was put together from, beside what it is derived
/// from.
pub fn synthesis(session: &Session, facts: &Conclusion<'_>, rests_on: &[String]) -> Event {
    let document = session.synthesis_document();
    let mut about = Description::of(session.synthesis())
        .entity(&[tg::SYNTHESIS, tg::ANSWER])
        .label("Synthesis")
        .derived_from(facts.derived_from)
        .link_if(tg::DOCUMENT, facts.stored.then_some(document.as_str()))
        .text(tg::TERMINATION_REASON, facts.reason.as_str());
    for found in rests_on {
        about = about.link(prov::USED, found);
    }
    let name = |number| session.citation(number);
    with_citations(about, name, facts.cites, facts.refused, &facts.usage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tg_schemas::Term;

    fn links(event: &Event, predicate: &str) -> Vec<String> {
        let of = event
            .triples
            .iter()
            .filter(|triple| triple.p == Some(Term::iri(predicate)));
        of.filter_map(|triple| match &triple.o {
            Some(Term::Iri(text) | Term::Literal { value: text, .. }) => Some(text.clone()),
            _ => None,
        })
        .collect()
    }

    #[test]
    fn a_plan_is_derived_from_the_session_and_a_revision_from_what_failed() {
        let id = Session::new("1");
        let goals = ["a".to_owned(), "b".to_owned()];
        let facts = Plan {
            revision: 0,
            goals: &goals,
            after: None,
            usage: Usage::default(),
        };
        let first = plan(&id, &facts);
        assert_eq!(links(&first, prov::WAS_DERIVED_FROM), [id.iri()]);
        assert_eq!(links(&first, tg::PLAN_STEP), ["a", "b"]);
        let failed = id.step_result(1);
        let second = plan(
            &id,
            &Plan {
                revision: 1,
                after: Some(&failed),
                ..facts
            },
        );
        assert_eq!(second.id, "urn:trustgraph:agent:1/plan/1");
        assert_eq!(links(&second, prov::WAS_DERIVED_FROM), [failed]);
    }

    #[test]
    fn a_finding_leads_back_to_its_subagent_and_to_the_split() {
        let id = Session::new("1");
        let end = Session::new("2").conclusion();
        let goal = "g".repeat(80);
        let found = finding(
            &id,
            &Finding {
                number: 0,
                goal: &goal,
                from: &id.decomposition(),
                end: Some(&end),
                usage: Usage::default(),
                error: None,
                stored: true,
            },
        );
        let from = links(&found, prov::WAS_DERIVED_FROM);
        assert_eq!(from, [end, id.decomposition()]);
        let label = links(&found, rdfs::LABEL).concat();
        assert_eq!(label, format!("Finding: {}", "g".repeat(60)));
        assert_eq!(links(&found, tg::DOCUMENT), [id.finding_document(0)]);
    }
}
