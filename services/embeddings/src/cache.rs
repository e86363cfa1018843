//! Vectors that were made lately, by model and text: the same text is not embedded twice. Bounded; what
//! was not asked for during half a fill is forgotten.

use std::collections::HashMap;
use std::sync::Arc;

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
const OVERHEAD: usize = 96;

/// The vectors, and which ones are being made.
pub struct Cache {
    state: Mutex<State>,
    half: usize,
}

#[derive(Default)]
struct State {
    young: HashMap<Key, Vector>,
    old: HashMap<Key, Vector>,
    bytes: usize,
    making: HashMap<Key, watch::Receiver<()>>,
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
        Self {
            state: Mutex::default(),
            half: bytes / 2,
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

impl State {
    fn get(&mut self, key: &Key, half: usize) -> Option<Vector> {
        if let Some(vector) = self.young.get(key) {
            return Some(vector.clone());
        }
        let vector = self.old.remove(key)?;
        self.put(*key, vector.clone(), half);
        Some(vector)
    }

    fn put(&mut self, key: Key, vector: Vector, half: usize) {
        let bytes = vector.len() * size_of::<f32>() + OVERHEAD;
        if self.bytes + bytes > half {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        if bytes <= half && self.young.insert(key, vector).is_none() {
            self.bytes += bytes;
        }
    }
}

impl Making<'_> {
    /// Looks a text up; what is not there and not coming is this one's to make.
    pub fn find(&mut self, key: Key) -> Found {
        let mut state = self.cache.state.lock();
        if let Some(vector) = state.get(&key, self.cache.half) {
            return Found::Here(vector);
        }
        if let Some(coming) = state.making.get(&key) {
            return Found::Coming(coming.clone());
        }
        state.making.insert(key, self.sender.subscribe());
        self.keys.push(key);
        Found::Mine
    }

    /// Keeps a vector that was made.
    pub fn made(&self, key: Key, vector: Vector) {
        let half = self.cache.half;
        self.cache.state.lock().put(key, vector, half);
    }
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        let mut state = self.cache.state.lock();
        for key in &self.keys {
            state.making.remove(key);
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
        let cache = Cache::new(20_000);
        let key = |n: usize| Key::new("m", &n.to_string());
        let mut making = cache.begin();
        assert!(matches!(making.find(key(0)), Found::Mine));
        making.made(key(0), vector(0.0));
        for n in 1..200 {
            assert!(matches!(making.find(key(0)), Found::Here(_)), "{n}");
            making.made(key(n), vector(n as f32));
        }
        let state = cache.state.lock();
        assert!(state.young.len() + state.old.len() <= 40);
        assert!(state.bytes <= 10_000);
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
