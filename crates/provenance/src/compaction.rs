//! Summaries that stand for earlier steps of a run. Nothing follows from them, as from what guards did; the steps stay.

use tg_schemas::vocabulary::{prov, tg};

use crate::build::{Description, Event, Usage};

/// A summary and what it stands for.
#[derive(Debug, Clone, Copy)]
pub struct Compaction<'a> {
    /// IRI of the decision or the end that was reached with it.
    pub about: &'a str,
    /// How good it is.
    pub tier: &'a str,
    /// The summary; empty where the steps are left out.
    pub text: &'a str,
    /// What of the trace it stands for, oldest first.
    pub of: &'a [String],
    /// How many steps that are, with those that came with the question.
    pub steps: u64,
    /// Tokens, about, before and after.
    pub tokens: (u64, u64),
    /// Id of the prompt that asked for it.
    pub prompt: &'a str,
    /// What it took, where the model was asked.
    pub usage: Usage<'a>,
}

/// Earlier steps of a run were summed up.
pub fn compaction(facts: &Compaction<'_>) -> Event {
    described(format!("{}/compaction", facts.about), facts)
        .derived_from(facts.about)
        .done()
}

/// The same steps were summed up again, after the run, on behalf of the request with that id: beside the summary that the run
/// went on with, and outside of its chain.
pub fn remade(request: &str, facts: &Compaction<'_>) -> Event {
    described(format!("urn:trustgraph:summary:{request}"), facts)
        .link(prov::ALTERNATE_OF, &format!("{}/compaction", facts.about))
        .done()
}

fn described(id: String, facts: &Compaction<'_>) -> Description {
    let text = Some(facts.text).filter(|text| !text.is_empty());
    let entry = Description::of(id)
        .entity(&[tg::COMPACTION])
        .label(format!("Compaction: {}", facts.tier))
        .text(tg::COMPACTION_TIER, facts.tier)
        .number(tg::COMPACTED_STEPS, Some(facts.steps))
        .number(tg::TOKENS_BEFORE, Some(facts.tokens.0))
        .number(tg::TOKENS_AFTER, Some(facts.tokens.1))
        .text_if(tg::SUMMARY, text)
        .text_if(tg::PROMPT, facts.usage.model.map(|_| facts.prompt))
        .used(&facts.usage);
    let of = facts.of.iter();
    of.fold(entry, |entry, iri| entry.derived_from(iri))
}
