//! Which spaces are in memory: loaded when first searched, the least recently used thrown out when all
//! together would be larger than a bound. A space larger than the bound is refused.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::engine::index::{Change, Index};
use crate::error::VectorError;

/// An index that searches share and the commit thread changes.
pub(crate) type Shared = Arc<RwLock<Index>>;

#[derive(Default)]
struct Entry {
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
    entries: Mutex<HashMap<i64, Arc<Entry>>>,
}

impl Cache {
    pub(crate) fn new(bound: usize) -> Self {
        Self {
            bound,
            clock: AtomicU64::new(0),
            entries: Mutex::default(),
        }
    }

    /// The index of a space, loaded if need be; others make room for it before.
    pub(crate) async fn get<F>(
        &self,
        space: i64,
        bytes: usize,
        load: impl FnOnce() -> F,
    ) -> Result<Shared, VectorError>
    where
        F: Future<Output = Result<Index, VectorError>>,
    {
        let entry = self.entries.lock().entry(space).or_default().clone();
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
            let others = entries.iter().filter(|(space, _)| **space != keep);
            let loaded = others.filter(|(_, entry)| entry.bytes() > 0);
            let oldest = loaded.min_by_key(|(_, entry)| entry.used.load(Ordering::Relaxed));
            let Some(oldest) = oldest.map(|(space, _)| *space) else {
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

/// What a space would need, and what there is.
pub(super) fn too_large(bytes: usize, bound: usize) -> VectorError {
    VectorError::Memory {
        needed: bytes.div_ceil(1 << 20),
        most: bound >> 20,
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}
