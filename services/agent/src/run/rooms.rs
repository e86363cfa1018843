//! How much may wait in this process for the ledger: of all runs together, and of those of one workspace. Where it is too
//! much, the oldest goes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// What holds parts of a run.
pub(super) trait Holds: Send + Sync {
    /// Drops its oldest one.
    fn drop_oldest(self: Arc<Self>);
}

/// All rooms.
pub(super) struct Rooms {
    most: usize,
    all: Mutex<All>,
}

#[derive(Default)]
struct All {
    bytes: usize,
    /// By workspace, as long as something of it is held.
    rooms: HashMap<Arc<str>, Room>,
    /// Counts what comes.
    next: u64,
}

#[derive(Default)]
struct Room {
    bytes: usize,
    /// Who holds something, by when the oldest of it came.
    oldest: BTreeMap<u64, Weak<dyn Holds>>,
}

/// What somebody holds: its bytes, and when the oldest of it came.
pub(super) type Held = (usize, Option<u64>);

impl Default for Rooms {
    fn default() -> Self {
        Self::within(usize::MAX)
    }
}

impl Rooms {
    /// So many bytes are held at most, and half of them for one workspace.
    pub(super) fn within(most: usize) -> Self {
        Self {
            most,
            all: Mutex::default(),
        }
    }

    /// Numbers of so many that come; the first of them.
    pub(super) fn come(&self, count: usize) -> u64 {
        let mut all = self.all.lock();
        let first = all.next;
        all.next += count as u64;
        first
    }

    /// Counts what is held now in place of what was; `who` where it is to go when there is too much.
    pub(super) fn count(
        &self,
        workspace: &Arc<str>,
        was: Held,
        is: Held,
        who: impl FnOnce() -> Weak<dyn Holds>,
    ) {
        if was == is {
            return;
        }
        let mut all = self.all.lock();
        all.bytes = (all.bytes + is.0).saturating_sub(was.0);
        let room = all.rooms.entry(workspace.clone()).or_default();
        room.bytes = (room.bytes + is.0).saturating_sub(was.0);
        if was.1 != is.1 {
            if let Some(at) = was.1 {
                room.oldest.remove(&at);
            }
            if let Some(at) = is.1 {
                room.oldest.insert(at, who());
            }
        }
        if room.oldest.is_empty() {
            all.rooms.remove(workspace);
        }
    }

    /// Drops what is too much: of this workspace, then of the one that has most.
    pub(super) fn clear(&self, workspace: &str) {
        while let Some(who) = self.too_much(workspace) {
            who.drop_oldest();
        }
    }

    fn too_much(&self, workspace: &str) -> Option<Arc<dyn Holds>> {
        let all = self.all.lock();
        let own = all.rooms.get(workspace);
        let room = match own {
            Some(own) if own.bytes > self.most / 2 => own,
            _ if all.bytes > self.most => all.rooms.values().max_by_key(|room| room.bytes)?,
            _ => return None,
        };
        // Of one that ends just now, all of it goes.
        room.oldest.values().find_map(Weak::upgrade)
    }

    #[cfg(test)]
    pub(super) fn held(&self, workspace: &str) -> (usize, usize) {
        let all = self.all.lock();
        let own = all.rooms.get(workspace).map_or(0, |room| room.bytes);
        (all.bytes, own)
    }
}
