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
use crate::engine::quota::Usage;
use crate::error::GraphError;
use crate::options::Limits;

/// Stack of the threads that merge and purge, in bytes: the process may say another default.
pub(crate) const CHORES: usize = 2 << 20;

/// See the module.
pub(crate) struct Shared {
    pub(crate) journal: Database,
    pub(crate) entries: Mutex<HashMap<CollectionKey, Arc<Entry>>>,
    pub(crate) limits: Limits,
    pub(crate) scans: Arc<Semaphore>,
    pub(crate) queries: Arc<Permits>,
    /// Queries whose answer is not read to its end yet.
    pub(crate) answers: Permits,
    pub(crate) queries_memory: Memory,
    /// Held while a dataset that is to be loaded takes its place among those in memory.
    pub(crate) loading: Mutex<()>,
    pub(crate) merging: Mutex<()>,
    pub(crate) purging: Mutex<()>,
    /// Counts how often what datasets hold was counted anew, so that nobody believes older figures.
    pub(crate) counts: AtomicU64,
}

impl Shared {
    pub(crate) fn new(journal: Database, limits: Limits) -> Self {
        Self {
            journal,
            entries: Mutex::default(),
            scans: Arc::new(Semaphore::new(limits.scans)),
            queries: Arc::new(Permits::new(limits.queries, limits.queries_of_one)),
            answers: Permits::new(limits.answers, limits.answers_of_one),
            queries_memory: Memory::new(limits.queries_memory),
            loading: Mutex::new(()),
            merging: Mutex::new(()),
            purging: Mutex::new(()),
            counts: AtomicU64::new(0),
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
        let of_one = "the graphs of one workspace";
        let bounds = [
            (all, more, limits.memory, "graphs"),
            (own, more_of_one, limits.memory_of_one, of_one),
        ];
        for (used, needed, limit, of) in bounds {
            if used.saturating_add(needed) <= limit {
                continue;
            }
            tracing::warn!(
                collection = key.collection(),
                used,
                needed,
                "no memory for a graph"
            );
            return Err(GraphError::GraphMemory {
                needed: needed.div_ceil(1 << 20),
                used: used >> 20,
                limit: limit >> 20,
                of,
            });
        }
        Ok(())
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

    /// Lets go of a dataset in memory: the next reader loads it from the journal.
    pub(crate) fn evict(&self, key: &CollectionKey, entry: &Arc<Entry>) {
        let mut entries = self.entries.lock();
        if entries
            .get(key)
            .is_some_and(|known| Arc::ptr_eq(known, entry))
        {
            entries.remove(key);
        }
    }
}
