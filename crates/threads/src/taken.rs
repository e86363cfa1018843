//! Ids that are taken: those of live threads, and those of ended ones as long as they are remembered, in all registries that
//! share a room. The id of a live thread is never forgotten.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::id::ThreadId;

/// The number of a registry among those that share a room.
pub(crate) type Owner = u64;

/// All ids that nobody may name as new ones.
#[derive(Debug)]
pub(crate) struct Taken {
    ids: HashSet<ThreadId>,
    /// Ended threads and their registries, in the order in which they ended.
    ended: BTreeMap<u64, (Owner, ThreadId)>,
    /// When the threads of a registry ended.
    of_owner: HashMap<Owner, BTreeSet<u64>>,
    /// How many ended threads all registries have together, at most.
    most: usize,
    /// How many threads have ended so far.
    count: u64,
    owners: Owner,
}

impl Taken {
    /// Remembers so many ended threads of all registries together.
    pub(crate) fn of(most: usize) -> Self {
        Self {
            ids: HashSet::new(),
            ended: BTreeMap::new(),
            of_owner: HashMap::new(),
            most,
            count: 0,
            owners: 0,
        }
    }

    /// One more registry.
    pub(crate) fn enter(&mut self) -> Owner {
        self.owners += 1;
        self.owners
    }

    pub(crate) fn has(&self, id: ThreadId) -> bool {
        self.ids.contains(&id)
    }

    pub(crate) fn take(&mut self, id: ThreadId) {
        self.ids.insert(id);
    }

    /// Remembers threads of a registry that ended. It has so many at most, and gives up its own oldest; where all have too many,
    /// the oldest of all go.
    pub(crate) fn end(
        &mut self,
        owner: Owner,
        ids: impl IntoIterator<Item = ThreadId>,
        own_most: usize,
    ) {
        for id in ids {
            self.count += 1;
            self.ended.insert(self.count, (owner, id));
            self.of_owner.entry(owner).or_default().insert(self.count);
        }
        while self.of_owner.get(&owner).map_or(0, BTreeSet::len) > own_most {
            self.forget_oldest_of(owner);
        }
        while self.ended.len() > self.most {
            let oldest = self.ended.values().next();
            let Some(owner) = oldest.map(|(owner, _)| *owner) else {
                break;
            };
            self.forget_oldest_of(owner);
        }
    }

    fn forget_oldest_of(&mut self, owner: Owner) {
        let Some(own) = self.of_owner.get_mut(&owner) else {
            return;
        };
        let oldest = own.pop_first();
        if own.is_empty() {
            self.of_owner.remove(&owner);
        }
        if let Some((_, id)) = oldest.and_then(|at| self.ended.remove(&at)) {
            self.ids.remove(&id);
        }
    }
}
