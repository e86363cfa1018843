//! Which relays this process has made, so that it makes each once.

use std::collections::HashSet;

use parking_lot::Mutex;
use tg_schemas::Topic;

/// Relays that are remembered as made. More flows than that are not busy at once in one process.
const KNOWN: usize = 4096;

/// A relay, the start of the flow that it was made for and the connection that it was made on: a flow that starts anew
/// has new topics, and a broker may come back without what it had.
pub(crate) type Made = (Topic, Option<u64>, Option<u64>);

/// Which relays were made.
#[derive(Default)]
pub(crate) struct Relays(Mutex<HashSet<Made>>);

impl Relays {
    /// Whether one was made.
    pub(crate) fn has(&self, made: &Made) -> bool {
        self.0.lock().contains(made)
    }

    /// One was made. At the bound all are forgotten, and made again when they are needed.
    pub(crate) fn note(&self, made: Made) {
        let mut known = self.0.lock();
        if known.len() >= KNOWN {
            known.clear();
        }
        known.insert(made);
    }

    /// None counts as made any more.
    pub(crate) fn forget(&self) {
        self.0.lock().clear();
    }
}
