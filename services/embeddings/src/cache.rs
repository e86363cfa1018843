//! Vectors that were made lately, by model and text: the same text is not embedded twice. Bounded; what was
//! not asked for longest is forgotten. Texts are made in batches, so who makes which is noted here.

use std::collections::HashMap;
use std::sync::Arc;

use moka::policy::EvictionPolicy;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

/// A vector that several askers hold.
pub type Vector = Arc<[f32]>;

/// Names a text of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

impl Key {
    /// The key of a text.
    pub fn new(model: &str, text: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update((model.len() as u64).to_le_bytes());
        hash.update(model.as_bytes());
        hash.update(text.as_bytes());
        Self(hash.finalize().into())
    }
}

/// Bytes an entry needs beside its numbers, about.
const OVERHEAD: usize = 192;

/// The vectors, and which ones are being made.
pub struct Cache {
    kept: moka::sync::Cache<Key, Vector>,
    making: Mutex<HashMap<Key, watch::Receiver<()>>>,
}

/// What is known of a text.
pub enum Found {
    /// Its vector.
    Here(Vector),
    /// Somebody is making it: look again when this ends.
    Coming(watch::Receiver<()>),
    /// Nothing: the asker makes it.
    Mine,
}

/// Says that its holder makes vectors; gone, others may try.
pub struct Making<'a> {
    cache: &'a Cache,
    keys: Vec<Key>,
    sender: watch::Sender<()>,
}

impl Cache {
    /// A cache of about `bytes`.
    pub fn new(bytes: usize) -> Self {
        let weight = |_: &Key, vector: &Vector| {
            u32::try_from(size_of_val::<[f32]>(vector) + OVERHEAD).unwrap_or(u32::MAX)
        };
        let kept = moka::sync::Cache::builder()
            .max_capacity(bytes as u64)
            .weigher(weight)
            .eviction_policy(EvictionPolicy::lru());
        Self {
            kept: kept.build(),
            making: Mutex::default(),
        }
    }

    /// Starts making vectors.
    pub fn begin(&self) -> Making<'_> {
        Making {
            cache: self,
            keys: Vec::new(),
            sender: watch::channel(()).0,
        }
    }
}

impl Making<'_> {
    /// Looks a text up; what is not there and not coming is this one's to make.
    pub fn find(&mut self, key: Key) -> Found {
        // Held while it is looked up: what was just made is found in one place or the other.
        let mut making = self.cache.making.lock();
        if let Some(vector) = self.cache.kept.get(&key) {
            return Found::Here(vector);
        }
        if let Some(coming) = making.get(&key) {
            return Found::Coming(coming.clone());
        }
        making.insert(key, self.sender.subscribe());
        self.keys.push(key);
        Found::Mine
    }

    /// Keeps a vector that was made.
    pub fn made(&self, key: Key, vector: Vector) {
        self.cache.kept.insert(key, vector);
    }
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        let mut making = self.cache.making.lock();
        for key in &self.keys {
            making.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(of: f32) -> Vector {
        vec![of; 100].into()
    }

    #[test]
    fn the_bound_holds_and_what_is_used_stays() {
        // Room for some 2,000: what is over the bound goes in batches of at most a few hundred.
        let cache = Cache::new(1_200_000);
        let key = |n: usize| Key::new("m", &n.to_string());
        let mut making = cache.begin();
        assert!(matches!(making.find(key(0)), Found::Mine));
        making.made(key(0), vector(0.0));
        for n in 1..10_000 {
            assert!(matches!(making.find(key(0)), Found::Here(_)), "{n}");
            making.made(key(n), vector(n as f32));
            assert!(cache.kept.entry_count() < 3_000, "{n}");
        }
        cache.kept.run_pending_tasks();
        assert!((1_000..=2_100).contains(&cache.kept.entry_count()));
        assert!(cache.kept.weighted_size() <= 1_200_000);
        assert!(matches!(making.find(key(1)), Found::Mine), "forgotten");
    }

    #[test]
    fn one_makes_and_others_wait() {
        let cache = Cache::new(1 << 20);
        let key = Key::new("m", "text");
        let (mut first, mut second) = (cache.begin(), cache.begin());
        assert!(matches!(first.find(key), Found::Mine));
        let Found::Coming(coming) = second.find(key) else {
            panic!("somebody makes it");
        };
        assert!(coming.has_changed().is_ok());
        drop(first);
        assert!(coming.has_changed().is_err(), "it ended, without a vector");
        assert!(matches!(second.find(key), Found::Mine));
        second.made(key, vector(1.0));
        drop(second);
        assert!(matches!(cache.begin().find(key), Found::Here(_)));
        assert!(matches!(
            cache.begin().find(Key::new("n", "text")),
            Found::Mine
        ));
    }
}
