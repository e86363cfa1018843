//! Which spaces are in memory: loaded when first searched, thrown out when all together would be larger than a bound, the
//! least recently used first of a workspace that has more than its part: who searches much makes room for it from their own.
//! A space larger than the bound is refused.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::engine::index::{Change, Index};
use crate::error::VectorError;

/// An index that searches share and the commit thread changes.
pub(crate) type Shared = Arc<RwLock<Index>>;

struct Entry {
    /// Whose it is.
    workspace: Arc<str>,
    /// Held while the space is loaded, so that it is loaded once and no change is missed: who changes a
    /// space waits for the load, and what the load saw already changes nothing when it comes again.
    index: tokio::sync::Mutex<Option<Shared>>,
    used: AtomicU64,
    bytes: AtomicUsize,
}

/// The spaces in memory, by number.
pub(crate) struct Cache {
    bound: usize,
    clock: AtomicU64,
    entries: Mutex<Entries>,
}

type Entries = HashMap<i64, Arc<Entry>>;

impl Cache {
    pub(crate) fn new(bound: usize) -> Self {
        Self {
            bound,
            clock: AtomicU64::new(0),
            entries: Mutex::default(),
        }
    }

    /// The index of a workspace's space, loaded if need be; others make room for it before.
    pub(crate) async fn get<F>(
        &self,
        workspace: &str,
        space: i64,
        bytes: usize,
        load: impl FnOnce() -> F,
    ) -> Result<Shared, VectorError>
    where
        F: Future<Output = Result<Index, VectorError>>,
    {
        let known = |entries: &mut Entries| {
            let entry = entries.entry(space);
            entry.or_insert_with(|| Entry::of(workspace)).clone()
        };
        let entry = known(&mut self.entries.lock());
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        entry.used.store(now, Ordering::Relaxed);
        let mut held = entry.index.lock().await;
        if let Some(index) = &*held {
            return Ok(index.clone());
        }
        if bytes > self.bound {
            return Err(too_large(bytes, self.bound));
        }
        // It counts while it is loaded: others may be, too.
        entry.bytes.store(bytes, Ordering::Relaxed);
        self.shrink(space);
        let loaded = load().await;
        if loaded.is_err() {
            entry.bytes.store(0, Ordering::Relaxed);
        }
        let index = loaded?;
        entry.bytes.store(index.bytes(), Ordering::Relaxed);
        let index = Arc::new(RwLock::new(index));
        *held = Some(index.clone());
        drop(held);
        metrics::counter!("tg_vectors_loads_total").increment(1);
        self.shrink(space);
        Ok(index)
    }

    /// Brings a space in memory, if it is there, up to what was committed. Blocks.
    pub(crate) fn apply(&self, space: i64, changes: impl Iterator<Item = Change>) {
        let Some(entry) = self.entries.lock().get(&space).cloned() else {
            return;
        };
        let held = entry.index.blocking_lock();
        let Some(index) = &*held else {
            return;
        };
        let mut index = index.write();
        changes.for_each(|change| index.apply(change));
        entry.bytes.store(index.bytes(), Ordering::Relaxed);
        drop(index);
        drop(held);
        self.shrink(space);
    }

    /// Forgets a space.
    pub(crate) fn remove(&self, space: i64) {
        self.entries.lock().remove(&space);
    }

    /// Forgets all spaces.
    pub(crate) fn clear(&self) {
        self.entries.lock().clear();
    }

    /// Bytes in memory, about.
    pub(crate) fn bytes(&self) -> usize {
        let entries = self.entries.lock();
        entries.values().map(|entry| entry.bytes()).sum()
    }

    fn shrink(&self, keep: i64) {
        let mut entries = self.entries.lock();
        let mut bytes: usize = entries.values().map(|entry| entry.bytes()).sum();
        while bytes > self.bound {
            let Some(oldest) = first_to_go(&entries, self.bound, keep) else {
                break;
            };
            if let Some(entry) = entries.remove(&oldest) {
                bytes = bytes.saturating_sub(entry.bytes());
                metrics::counter!("tg_vectors_unloads_total").increment(1);
            }
        }
        metrics::gauge!("tg_vectors_memory_bytes").set(bytes as f64);
    }
}

/// The space that makes room for `keep`. Each workspace that has any in memory has an equal part of the bound; while those
/// that are there need more than that together, one of them has more than its part.
fn first_to_go(entries: &Entries, bound: usize, keep: i64) -> Option<i64> {
    let loaded = || entries.iter().filter(|(_, entry)| entry.bytes() > 0);
    let mut of: HashMap<&str, usize> = HashMap::new();
    for (_, entry) in loaded() {
        *of.entry(&entry.workspace).or_default() += entry.bytes();
    }
    let part = bound / of.len().max(1);
    let others = loaded().filter(|(space, _)| **space != keep);
    let first = others.min_by_key(|(_, entry)| {
        let within = of.get(&*entry.workspace).is_none_or(|all| *all <= part);
        (within, entry.used.load(Ordering::Relaxed))
    });
    first.map(|(space, _)| *space)
}

/// What a space would need, and what there is.
pub(super) fn too_large(bytes: usize, bound: usize) -> VectorError {
    VectorError::Memory {
        needed: bytes.div_ceil(1 << 20),
        most: bound >> 20,
    }
}

impl Entry {
    fn of(workspace: &str) -> Arc<Self> {
        Arc::new(Self {
            workspace: workspace.into(),
            index: tokio::sync::Mutex::default(),
            used: AtomicU64::new(0),
            bytes: AtomicUsize::new(0),
        })
    }

    fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> Index {
        Index::new(64, 100)
    }

    /// A cache with room for so many spaces of a test.
    fn cache(spaces: usize) -> Cache {
        Cache::new(spaces * index().bytes())
    }

    /// Searches a space; whether it was in memory.
    async fn was_there(cache: &Cache, workspace: &str, space: i64) -> bool {
        let mut there = true;
        let load = || {
            there = false;
            async { Ok(index()) }
        };
        let found = cache.get(workspace, space, index().bytes(), load).await;
        assert!(found.is_ok());
        there
    }

    #[tokio::test]
    async fn the_searches_of_one_workspace_take_no_room_from_another() {
        let cache = cache(4);
        assert!(!was_there(&cache, "b", 1).await);
        for space in 10..30 {
            assert!(!was_there(&cache, "a", space).await);
        }
        assert!(was_there(&cache, "b", 1).await, "searched least recently");
        // Of its own the oldest went.
        assert!(was_there(&cache, "a", 29).await && was_there(&cache, "a", 27).await);
        assert!(!was_there(&cache, "a", 26).await);
        assert!(cache.bytes() <= 4 * index().bytes());
    }

    #[tokio::test]
    async fn who_comes_gets_room_from_who_has_more_than_a_part() {
        let cache = cache(4);
        for space in 1..=2 {
            was_there(&cache, "b", space).await;
        }
        for space in 11..=12 {
            was_there(&cache, "a", space).await;
        }
        // Three share now: a part is less than two spaces. The oldest of who has two goes.
        assert!(!was_there(&cache, "c", 21).await);
        assert!(was_there(&cache, "b", 2).await && was_there(&cache, "c", 21).await);
        // Now it is one of the workspace that still has two, whoever searched last.
        assert!(!was_there(&cache, "d", 31).await);
        for (workspace, space) in [("a", 12), ("b", 2), ("c", 21), ("d", 31)] {
            assert!(was_there(&cache, workspace, space).await, "{workspace}");
        }
    }

    #[tokio::test]
    async fn a_space_that_needs_nearly_all_gets_it() {
        let cache = cache(4);
        was_there(&cache, "b", 1).await;
        let large = 4 * index().bytes();
        let found = cache.get("a", 2, large, || async { Ok(Index::new(64, 390)) });
        assert!(found.await.is_ok());
        assert!(!was_there(&cache, "b", 1).await);
    }
}
