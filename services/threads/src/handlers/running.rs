//! What listeners have now, by thread: whoever ends a thread stops that, whichever message from outside led to it.

use std::collections::BTreeMap;

use futures::future::AbortHandle;
use tg_mesh::{Mesh, Stands};
use tg_schemas::msg::ThreadTurn;
use tg_threads::{Name, ThreadId};

/// A turn that runs.
#[derive(Clone)]
pub(super) struct Turn {
    /// Who has the message.
    pub(super) listener: Name,
    /// The id under which the listener is asked.
    pub(super) id: String,
    /// When it began, in milliseconds since 1970.
    pub(super) since: i64,
    pub(super) stop: AbortHandle,
}

impl Turn {
    /// How far it is.
    pub(super) fn shown(self, mesh: &Mesh) -> ThreadTurn {
        let (waits_for, silent) = match mesh.client().stands(&self.id) {
            None => ("", None),
            Some(Stands::Untaken) => ("process", None),
            Some(Stands::Taken { silent }) => ("answer", Some(silent)),
        };
        let silent = silent.map_or(0, |silent| silent.as_millis());
        ThreadTurn {
            listener: self.listener.to_string(),
            since_ms: self.since,
            waits_for: waits_for.to_owned(),
            silent_ms: i64::try_from(silent).unwrap_or(i64::MAX),
        }
    }
}

/// The turns of a workspace that run.
#[derive(Default)]
pub(super) struct Running {
    turns: BTreeMap<(ThreadId, u64), Turn>,
    added: u64,
}

impl Running {
    /// Adds a turn on a thread; returns the number under which it is removed.
    pub(super) fn add(&mut self, thread: ThreadId, turn: Turn) -> u64 {
        self.added += 1;
        self.turns.insert((thread, self.added), turn);
        self.added
    }

    /// Removes a turn that is over.
    pub(super) fn remove(&mut self, thread: ThreadId, turn: u64) {
        self.turns.remove(&(thread, turn));
    }

    /// The turns that run on a thread, in the order in which they began.
    pub(super) fn on(&self, thread: ThreadId) -> impl Iterator<Item = &Turn> {
        let turns = self.turns.range((thread, 0)..=(thread, u64::MAX));
        turns.map(|(_, turn)| turn)
    }

    /// Stops what runs on threads that have ended: nobody waits for what would be dropped.
    pub(super) fn stop(&self, ended: &[ThreadId]) {
        for thread in ended {
            self.on(*thread).for_each(|turn| turn.stop.abort());
        }
    }
}
