//! Supervisor: the model splits the question among subagents, and answers from what they found.

use tg_provenance::{Session, decomposition};
use tg_schemas::msg::AgentRun;

use crate::engine::decision::Taken;
use crate::engine::linked::Linked;
use crate::engine::pattern::{Decided, Done, Pattern};
use crate::engine::phase::Phase;
use crate::engine::splitting;
use crate::engine::trace::{Entries, Left, used};

/// See the module.
pub(super) struct Supervised;

impl Pattern for Supervised {
    fn next(&self, run: &AgentRun) -> Phase {
        match run.plan.is_empty() {
            true => Phase::Decompose,
            false => Phase::Merge,
        }
    }

    fn before(&self, run: &AgentRun, _: u32) -> String {
        let id = Session::new(&run.run);
        match run.plan.is_empty() {
            true => id.iri().to_owned(),
            // What it rests on, it names beside.
            false => id.decomposition(),
        }
    }

    fn record(&self, next: &mut AgentRun, done: Done<'_>) {
        next.plan = splitting::found(&done.seen.findings);
    }

    fn render(&self, of: &Entries<'_>, left: &Decided<'_>, linked: &mut Linked) {
        let id = &Session::new(&of.run.run);
        let Taken::Goals { goals } = &left.decision.taken else {
            return;
        };
        if !left.begun {
            let usage = left.decision.asked();
            linked.add(decomposition(id, goals, &used(&usage)), None);
        }
        let found = left.seen.map_or(&[][..], |seen| &seen.findings);
        of.found(id, found, &id.decomposition(), linked);
    }

    fn last(&self, of: &Entries<'_>, _: &Left<'_>) -> String {
        Session::new(&of.run.run).decomposition()
    }
}
