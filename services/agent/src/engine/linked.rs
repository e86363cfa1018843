//! Entries as they are chained, and those of guards, which come rung by rung.

use tg_provenance::{Chain, Event, Guarded, guarded};

use crate::engine::guards::{Climbed, Rung};

/// What a guard did about a call that was not made yet. One that has the run stopped does not let it be made.
pub fn before_call(guard: &Climbed) -> &'static [Rung] {
    match guard.rung {
        Rung::Warn => &[Rung::Warn],
        Rung::Tell => &[Rung::Tell],
        Rung::Block => &[Rung::Block],
        Rung::Stop => &[Rung::Block, Rung::Stop],
    }
}

/// Entries as they are chained.
pub struct Linked {
    chain: Option<Chain>,
    library: bool,
    /// All so far.
    pub events: Vec<Event>,
}

impl Linked {
    /// Those that there are. `chain`: what the next go on with; `None` of a run that has none. `library`: it takes the texts.
    pub fn new(chain: Option<Chain>, library: bool, mut events: Vec<Event>) -> Self {
        events.reserve(4);
        Self {
            chain,
            library,
            events,
        }
    }

    /// The next entry, with the text that it has in the library.
    pub fn add(&mut self, event: Event, text: Option<&str>) {
        self.join(event, text, None);
    }

    /// What a guard did about an entity, rung by rung.
    pub fn guarded(&mut self, about: &str, guard: &Climbed, rungs: &[Rung]) {
        for rung in rungs {
            let entry = guarded(&Guarded {
                about,
                rung: rung.as_str(),
                detector: guard.detector.as_str(),
                count: guard.count,
                message: &guard.message,
            });
            self.add(entry, None);
        }
    }

    /// The same of one in which another chain ends, whose last entry has this hash.
    pub fn join(&mut self, event: Event, text: Option<&str>, other: Option<&str>) {
        // One that is empty is not stored.
        let text = text.filter(|text| self.library && !text.is_empty());
        self.events.push(match &mut self.chain {
            Some(chain) => chain.join(event, text, other),
            None => event,
        });
    }
}
