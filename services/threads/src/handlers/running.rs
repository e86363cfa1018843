//! What listeners have now, by thread: whoever ends a thread stops that, whichever message from outside led to it.

use std::collections::BTreeMap;

use futures::future::AbortHandle;
use tg_threads::ThreadId;

/// The turns of a workspace that run.
#[derive(Default)]
pub(super) struct Running {
    turns: BTreeMap<(ThreadId, u64), AbortHandle>,
    added: u64,
}

impl Running {
    /// Adds a turn on a thread; returns the number under which it is removed.
    pub(super) fn add(&mut self, thread: ThreadId, stop: AbortHandle) -> u64 {
        self.added += 1;
        self.turns.insert((thread, self.added), stop);
        self.added
    }

    /// Removes a turn that is over.
    pub(super) fn remove(&mut self, thread: ThreadId, turn: u64) {
        self.turns.remove(&(thread, turn));
    }

    /// Stops what runs on threads that have ended: nobody waits for what would be dropped.
    pub(super) fn stop(&self, ended: &[ThreadId]) {
        for thread in ended {
            let turns = self.turns.range((*thread, 0)..=(*thread, u64::MAX));
            turns.for_each(|(_, stop)| stop.abort());
        }
    }
}
