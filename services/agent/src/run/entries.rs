//! The entries of a step's trace. They are functions of the run and its rows, so those that were made to be shown are stored as they
//! are, where the library takes what it was promised to take.

use tg_provenance::Event;

use super::execution::StepExecution;
use crate::engine::trace::{Entries, Left, Stored};

impl StepExecution {
    /// The entries of this step's trace.
    pub(super) fn entries(&self) -> Entries<'_> {
        Entries {
            run: &self.run,
            step: self.step,
            library: self.traces.has_library(),
        }
    }

    /// All entries as they are shown, before it is known what the library took.
    pub(super) fn all_promised(&self, left: &Left<'_>) -> Vec<Event> {
        self.promised_after(Vec::new(), left)
    }

    /// The same, of which those of the decision were made before anything came of it.
    pub(super) fn promised_after(&self, begun: Vec<Event>, left: &Left<'_>) -> Vec<Event> {
        let library = self.traces.has_library();
        let stored = Stored {
            thought: library,
            text: library,
        };
        self.entries().after(begun, left, stored)
    }

    /// Those of a step that are new with it; those that it begins with were shown before.
    pub(super) fn new_of<'a>(&self, all: &'a [Event]) -> Vec<&'a Event> {
        let began = [self.id.iri().to_owned(), self.id.pattern_decision()];
        let new = all.iter().filter(|entry| !began.contains(&entry.id));
        new.collect()
    }

    /// The new ones alone.
    pub(super) fn promised(&self, left: &Left<'_>) -> Vec<Event> {
        let began = [self.id.iri().to_owned(), self.id.pattern_decision()];
        let mut entries = self.all_promised(left);
        entries.retain(|entry| !began.contains(&entry.id));
        entries
    }

    /// The hash of the last of the new ones.
    pub(super) fn head_of(&self, all: &[Event]) -> String {
        let new = self.new_of(all);
        let last = new.last().map(|last| std::slice::from_ref(*last));
        last.map(Entries::head).unwrap_or_default()
    }

    /// The hash of the last entry.
    pub(super) fn head(&self, left: &Left<'_>) -> String {
        Entries::head(&self.promised(left))
    }

    /// The entries to store, once it is known whether the library has the thought and the text: those that were promised, where it has
    /// what was promised.
    pub(super) fn to_store(
        &self,
        left: &Left<'_>,
        promised: Option<Vec<Event>>,
        [thought, text]: [bool; 2],
    ) -> Vec<Event> {
        let library = self.traces.has_library();
        // A thought that is empty has no entry, so nothing was promised of it.
        let as_promised = thought == library || self.reflected(left.decision).is_empty();
        match promised {
            Some(all) if as_promised && text == library => all,
            _ => self.entries().of(left, Stored { thought, text }),
        }
    }
}
