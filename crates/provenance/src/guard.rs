//! What guards did about a step of a run. Nothing follows from it: readers of traces stop at what they do not know.

use tg_schemas::vocabulary::{rdfs, tg};

use crate::build::{Description, Event};

/// What a guard did.
#[derive(Debug, Clone, Copy)]
pub struct Guarded<'a> {
    /// IRI of the decision or observation that it is about.
    pub about: &'a str,
    /// Name of the rung: `warn`, `tell`, `block`, `stop`.
    pub rung: &'a str,
    /// What found it.
    pub detector: &'a str,
    /// What was counted.
    pub count: u64,
    /// In words.
    pub message: &'a str,
}

/// A guard did something about a decision or an observation.
pub fn guarded(facts: &Guarded<'_>) -> Event {
    let rung = facts.rung;
    Description::of(format!("{}/guard/{rung}", facts.about))
        .entity(&[tg::GUARD])
        .label(format!("Guard: {rung}"))
        .text(tg::GUARD_RUNG, rung)
        .text(tg::GUARD_DETECTOR, facts.detector)
        .number(tg::GUARD_COUNT, Some(facts.count))
        .text(rdfs::COMMENT, facts.message)
        .derived_from(facts.about)
        .done()
}
