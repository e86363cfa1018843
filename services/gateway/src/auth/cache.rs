//! A bounded memory with expiry. What has expired goes once a minute; at the bound, that first, then everything.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How often what has expired goes: nothing that came once stays for good.
const SWEEP: Duration = Duration::from_secs(60);

/// Remembers values for a while.
pub(super) struct Cache<K, V> {
    rows: Mutex<HashMap<K, (V, Instant)>>,
    /// When what has expired goes next.
    sweep: Mutex<Option<Instant>>,
    limit: usize,
}

impl<K: Eq + Hash, V: Clone> Cache<K, V> {
    /// At most `limit` values.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            rows: Mutex::default(),
            sweep: Mutex::default(),
            limit: limit.max(1),
        }
    }

    /// A value that has not expired.
    pub(super) fn get(&self, key: &K, now: Instant) -> Option<V> {
        let rows = self.rows.lock();
        let (value, until) = rows.get(key)?;
        (now < *until).then(|| value.clone())
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        self.rows.lock().clear();
    }

    /// Remembers a value.
    pub(super) fn put(&self, key: K, value: V, now: Instant, memory: Duration) {
        if memory.is_zero() {
            return;
        }
        let mut rows = self.rows.lock();
        let full = rows.len() >= self.limit && !rows.contains_key(&key);
        let mut sweep = self.sweep.lock();
        let due = *sweep.get_or_insert(now + SWEEP) <= now;
        if full || due {
            rows.retain(|_, (_, until)| now < *until);
            *sweep = Some(now + SWEEP);
        }
        if full && rows.len() >= self.limit {
            rows.clear();
        }
        rows.insert(key, (value, now + memory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_expire_and_the_bound_holds() {
        let cache = Cache::new(2);
        let start = Instant::now();
        let minute = Duration::from_secs(60);
        cache.put(1, "a", start, minute);
        cache.put(2, "b", start, Duration::from_secs(1));
        let now = start + Duration::from_secs(2);
        assert_eq!(cache.get(&2, now), None);
        cache.put(3, "c", now, minute);
        assert_eq!(
            (cache.get(&1, now), cache.get(&3, now)),
            (Some("a"), Some("c"))
        );
        cache.put(4, "d", now, minute);
        assert_eq!(cache.rows.lock().len(), 1);
        cache.put(5, "e", now, Duration::ZERO);
        assert_eq!(cache.get(&5, now), None);
    }

    #[test]
    fn what_has_expired_goes_although_there_is_room() {
        let (cache, start) = (Cache::new(1000), Instant::now());
        for key in 0..100 {
            cache.put(key, "x", start, Duration::from_secs(1));
        }
        let now = start + SWEEP;
        cache.put(100, "y", now, Duration::from_secs(1));
        assert_eq!(cache.rows.lock().len(), 1);
    }
}
