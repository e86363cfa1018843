//! What a user was asked before a tool was used. Nothing follows from it, as from what guards did.

use tg_schemas::vocabulary::{rdfs, tg};

use crate::build::{Description, Event};

/// What came of asking.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Its IRI.
    pub id: &'a str,
    /// IRI of the decision that it is about.
    pub about: &'a str,
    /// `yes`, `no`, `unanswered` or `too-many`.
    pub answer: &'a str,
    /// User who answered; empty: nobody.
    pub by: &'a str,
    /// What was asked about.
    pub tool: &'a str,
}

/// A user was asked before a tool was used.
pub fn confirmation(facts: &Asked<'_>) -> Event {
    let mut entry = Description::of(facts.id.to_owned())
        .entity(&[tg::CONFIRMATION])
        .label(format!("Confirmation: {}", facts.answer))
        .text(tg::CONFIRMATION_ANSWER, facts.answer)
        .text(rdfs::COMMENT, format!("May '{}' be used?", facts.tool));
    if !facts.by.is_empty() {
        entry = entry.text(tg::CONFIRMATION_BY, facts.by);
    }
    entry.derived_from(facts.about).done()
}
