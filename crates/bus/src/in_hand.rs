//! How many bytes of records are handed out and not settled, over all queues of a bus. A count alone is no bound: records have
//! up to 16 MiB, and each reader takes a hundred and more at once.
//!
//! A queue of which nothing is handed out may always hand out one, whatever the others did: no reader waits for another for ever.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Goes on with a queue that waited.
pub(crate) type Wake = Box<dyn FnOnce() + Send>;

/// The bytes of a bus.
pub(crate) struct InHand {
    most: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    bytes: usize,
    /// Records that are handed out, by queue.
    handed_out: HashMap<u64, usize>,
    /// Queues that wait, each once.
    waiting: Vec<(u64, Wake)>,
}

/// A record that is handed out, until it is dropped.
pub(crate) struct Hand {
    of: Arc<InHand>,
    queue: u64,
    bytes: usize,
}

impl InHand {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            state: Mutex::default(),
        })
    }

    /// Counts a record that a queue hands out; where there is no room for it, `wake` is called once there may be.
    pub(crate) fn take(
        self: &Arc<Self>,
        queue: u64,
        bytes: usize,
        wake: impl FnOnce() -> Wake,
    ) -> Option<Hand> {
        let mut state = self.state.lock();
        let is_full = state.bytes >= self.most;
        if is_full && state.handed_out.contains_key(&queue) {
            if state.waiting.iter().all(|(of, _)| *of != queue) {
                state.waiting.push((queue, wake()));
            }
            return None;
        }
        *state.handed_out.entry(queue).or_default() += 1;
        state.bytes += bytes;
        Some(Hand {
            of: self.clone(),
            queue,
            bytes,
        })
    }

    /// Bytes that a queue may hand out now; what it hands out last may be larger. One more where nothing of it is handed out.
    pub(crate) fn room(&self, queue: u64) -> usize {
        let state = self.state.lock();
        let least = usize::from(!state.handed_out.contains_key(&queue));
        self.most.saturating_sub(state.bytes).max(least)
    }

    fn give_back(&self, queue: u64, bytes: usize) {
        let woken = {
            let mut state = self.state.lock();
            state.bytes -= bytes;
            let left = state.handed_out.get(&queue).map_or(0, |count| count - 1);
            match left {
                0 => drop(state.handed_out.remove(&queue)),
                left => drop(state.handed_out.insert(queue, left)),
            }
            let is_full = state.bytes >= self.most;
            let goes_on = |of: u64| !is_full || (of == queue && left == 0);
            let all = std::mem::take(&mut state.waiting);
            let (woken, waiting) = all.into_iter().partition(|(of, _)| goes_on(*of));
            state.waiting = waiting;
            woken
        };
        let woken: Vec<(u64, Wake)> = woken;
        for (_, wake) in woken {
            wake();
        }
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.of.give_back(self.queue, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn bytes_are_bounded_and_each_queue_may_hand_out_one() {
        let all = InHand::new(10);
        let woken = Arc::new(AtomicUsize::new(0));
        let wake = || -> Wake {
            let woken = woken.clone();
            Box::new(move || {
                woken.fetch_add(1, Ordering::Relaxed);
            })
        };
        let first = all.take(1, 8, wake);
        let second = all.take(1, 8, wake);
        assert!(
            first.is_some() && second.is_some(),
            "one begins below the bound"
        );
        assert!(all.take(1, 6, wake).is_none(), "it is full");
        let other = all.take(2, 20, wake);
        assert!(other.is_some(), "of this one nothing is handed out");
        drop(first);
        assert_eq!(woken.load(Ordering::Relaxed), 0, "it still is full");
        drop(second);
        assert_eq!(
            woken.load(Ordering::Relaxed),
            1,
            "nothing of it is handed out any more"
        );
        let third = all.take(1, 6, wake);
        assert!(third.is_some() && all.take(1, 6, wake).is_none());
        drop(other);
        assert_eq!(woken.load(Ordering::Relaxed), 2, "there is room");
        drop(third);
        let state = all.state.lock();
        assert!(state.bytes == 0 && state.handed_out.is_empty() && state.waiting.is_empty());
    }
}
