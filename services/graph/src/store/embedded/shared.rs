//! What the engine's threads share: the journal, the datasets in memory, and what they may use.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tg_collections::CollectionKey;
use tg_storage::Database;
use tokio::sync::Semaphore;

use super::entry::Entry;
use super::permits::Permits;
use super::sparql::memory::Memory;
use super::sparql::turns::Turns;
use crate::engine::quota::Usage;
use crate::error::GraphError;
use crate::options::Limits;

/// Stack of the threads that merge and purge, in bytes: the process may say another default.
pub(crate) const CHORES: usize = 2 << 20;

/// What the share of a workspace is for, in errors.
const OF_ONE: &str = "the graphs of one workspace";

/// See the module.
pub(crate) struct Shared {
    pub(crate) journal: Database,
    pub(crate) entries: Mutex<HashMap<CollectionKey, Arc<Entry>>>,
    pub(crate) limits: Limits,
    pub(crate) scans: Arc<Semaphore>,
    pub(crate) queries: Arc<Permits>,
    /// Of the queries that have such a place, those that are evaluated at the moment.
    pub(crate) turns: Arc<Turns>,
    /// Queries whose answer is not read to its end yet.
    pub(crate) answers: Permits,
    pub(crate) queries_memory: Memory,
    /// Held while a dataset that is to be loaded takes its place among those in memory.
    pub(crate) loading: Mutex<()>,
    pub(crate) merging: Mutex<()>,
    pub(crate) purging: Mutex<()>,
    /// Counts how often what datasets hold was counted anew, so that nobody believes older figures.
    pub(crate) counts: AtomicU64,
    /// The next commit panics between the journal and the datasets in memory.
    #[cfg(test)]
    pub(crate) dies: std::sync::atomic::AtomicBool,
}

impl Shared {
    pub(crate) fn new(journal: Database, limits: Limits) -> Self {
        Self {
            journal,
            entries: Mutex::default(),
            scans: Arc::new(Semaphore::new(limits.scans)),
            queries: Arc::new(Permits::new(limits.queries, limits.queries_of_one)),
            turns: Arc::default(),
            answers: Permits::new(limits.answers, limits.answers_of_one),
            queries_memory: Memory::new(limits.queries_memory),
            loading: Mutex::new(()),
            merging: Mutex::new(()),
            purging: Mutex::new(()),
            counts: AtomicU64::new(0),
            #[cfg(test)]
            dies: std::sync::atomic::AtomicBool::new(false),
            limits,
        }
    }

    /// Whether there is memory for one more dataset, or for more in one, beside what is loaded: for so much in all, of
    /// which so much is of the dataset's workspace.
    pub(crate) fn room_for(
        &self,
        key: &CollectionKey,
        more: Usage,
        more_of_one: Usage,
    ) -> Result<(), GraphError> {
        let limits = &self.limits;
        if limits.memory == u64::MAX || more_of_one == Usage::default() {
            return Ok(());
        }
        let (all, own) = self.in_memory(key.workspace());
        let (more, more_of_one) = (more.memory(), more_of_one.memory());
        within(key, all, more, (limits.memory, "graphs"))?;
        within(key, own, more_of_one, (limits.memory_of_one, OF_ONE))
    }

    /// Whether all that a workspace will hold, of which so much is new, is in memory together once somebody asks for it:
    /// what does not fit is refused before it is kept, and not when it is to be loaded.
    pub(crate) fn fits_whole(
        &self,
        key: &CollectionKey,
        held: Usage,
        adds: Usage,
    ) -> Result<(), GraphError> {
        let limits = &self.limits;
        if limits.memory == u64::MAX || adds == Usage::default() {
            return Ok(());
        }
        let (before, adds) = (held.without(adds).memory(), adds.memory());
        within(key, before, adds, (limits.memory_of_one, OF_ONE))
    }

    /// What the datasets in memory take, all of them and those of a workspace.
    fn in_memory(&self, workspace: &str) -> (u64, u64) {
        let entries = self.entries.lock();
        entries.iter().fold((0, 0), |(all, own), (key, entry)| {
            let held = entry.held().memory();
            let of_it = if key.workspace() == workspace {
                held
            } else {
                0
            };
            (all.saturating_add(held), own.saturating_add(of_it))
        })
    }

    /// What datasets hold was counted anew.
    pub(crate) fn recounted(&self) {
        self.counts.fetch_add(1, Ordering::Relaxed);
    }

    /// Lets go of all datasets in memory: the journal alone says what there is, and they are loaded from it when they are
    /// read next.
    pub(crate) fn forget(&self) {
        let gone = std::mem::take(&mut *self.entries.lock());
        gone.values().for_each(|entry| entry.retire());
        self.recounted();
    }

    /// Lets go of a dataset in memory: the next reader loads it from the journal.
    pub(crate) fn evict(&self, key: &CollectionKey, entry: &Arc<Entry>) {
        let mut entries = self.entries.lock();
        if entries
            .get(key)
            .is_some_and(|known| Arc::ptr_eq(known, entry))
        {
            entries.remove(key);
            drop(entries);
            entry.retire();
        }
    }
}

/// Whether a graph that needs so much finds room in a limit, of which so much is in use, of what it says.
fn within(
    key: &CollectionKey,
    used: u64,
    needed: u64,
    (limit, of): (u64, &'static str),
) -> Result<(), GraphError> {
    if used.saturating_add(needed) <= limit {
        return Ok(());
    }
    tracing::warn!(
        collection = key.collection(),
        used,
        needed,
        "no memory for a graph"
    );
    Err(GraphError::GraphMemory {
        needed: needed.div_ceil(1 << 20),
        used: used >> 20,
        limit: limit >> 20,
        of,
    })
}
