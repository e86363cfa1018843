//! Counts work in progress per key (a workspace, a user, an address), so that one of them cannot take the whole
//! gateway.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

type Counts<K> = Arc<Mutex<HashMap<K, usize>>>;

/// Counts of all keys. Bounded by what is in progress.
#[derive(Debug, Clone)]
pub(crate) struct InFlight<K: Eq + Hash = String> {
    counts: Counts<K>,
    limit: usize,
}

/// One piece of work; counts until dropped.
#[derive(Debug)]
pub(crate) struct Permit<K: Eq + Hash = String> {
    counts: Counts<K>,
    key: K,
}

impl<K: Eq + Hash + Clone> InFlight<K> {
    /// At most `limit` at once for each key.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            counts: Arc::default(),
            limit,
        }
    }

    /// What is in progress, of all keys.
    pub(crate) fn all(&self) -> usize {
        self.counts.lock().values().sum()
    }

    /// Starts a piece of work, unless the key is at its limit.
    pub(crate) fn enter(&self, key: impl Into<K>) -> Option<Permit<K>> {
        self.enter_within(key, self.limit)
    }

    /// The same of a key whose limit is another, and no higher.
    pub(crate) fn enter_within(&self, key: impl Into<K>, most: usize) -> Option<Permit<K>> {
        let key = key.into();
        let most = most.min(self.limit);
        let mut counts = self.counts.lock();
        let count = counts.entry(key.clone()).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Permit {
            counts: self.counts.clone(),
            key,
        })
    }
}

impl<K: Eq + Hash> Drop for Permit<K> {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_has_its_limit_and_nobody_elses() {
        let all: InFlight = InFlight::new(1);
        let first = all.enter("a");
        assert!(first.is_some() && all.enter("a").is_none() && all.enter("b").is_some());
        drop(first);
        assert_eq!(all.all(), 0);
        let again = all.enter("a");
        assert!(again.is_some() && all.all() == 1);
        drop(again);
        assert!(all.counts.lock().is_empty());
    }
}
