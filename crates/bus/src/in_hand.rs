//! How many bytes of records are handed out and not settled, over all consumers of a process. A count alone is no bound:
//! records have up to 16 MiB, and each reader takes a hundred and more at once.
//!
//! Who holds nothing may always have one, whatever the others hold: no reader waits for another for ever.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

/// Bytes handed out at once where nobody says how many.
pub(crate) const MOST: usize = 128 << 20;

/// What becomes of a record for which there is room now. Says whether it will be handed out.
pub(crate) type Wake = Box<dyn FnOnce() -> bool + Send>;

/// The bytes of a process.
pub(crate) struct InHand {
    most: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    bytes: usize,
    consumers: HashMap<u64, Holder>,
    /// Consumers that wait, in order; one entry for each record.
    order: VecDeque<u64>,
}

#[derive(Default)]
struct Holder {
    records: usize,
    waiting: VecDeque<(usize, Wake)>,
}

/// A record that is handed out, until it is dropped.
pub(crate) struct Hand {
    of: Arc<InHand>,
    consumer: u64,
    bytes: usize,
}

impl InHand {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            state: Mutex::default(),
        })
    }

    /// Counts a record that a consumer is to have; where there is no room for it, `wake` is called once there is.
    pub(crate) fn take(
        self: &Arc<Self>,
        consumer: u64,
        bytes: usize,
        wake: impl FnOnce() -> Wake,
    ) -> Option<Hand> {
        let mut state = self.state.lock();
        let is_full = state.bytes >= self.most;
        let holder = state.consumers.entry(consumer).or_default();
        if is_full && holder.records > 0 {
            holder.waiting.push_back((bytes, wake()));
            state.order.push_back(consumer);
            return None;
        }
        holder.records += 1;
        state.bytes += bytes;
        Some(Hand {
            of: self.clone(),
            consumer,
            bytes,
        })
    }

    /// Wakes one that waits for a consumer that holds nothing. Says whether there was one.
    pub(crate) fn again(&self, consumer: u64) -> bool {
        loop {
            let next = self.state.lock().idle(consumer);
            let Some((_, wake)) = next else {
                return false;
            };
            if wake() {
                return true;
            }
        }
    }

    /// Wakes all that wait for a consumer: it takes nothing more.
    pub(crate) fn release(&self, consumer: u64) {
        let waiting = {
            let mut state = self.state.lock();
            state.order.retain(|one| *one != consumer);
            let holder = state.consumers.get_mut(&consumer);
            let waiting = holder.map(|holder| std::mem::take(&mut holder.waiting));
            state.forget(consumer);
            waiting
        };
        for (_, wake) in waiting.into_iter().flatten() {
            wake();
        }
    }

    fn give_back(&self, consumer: u64, bytes: usize) {
        {
            let mut state = self.state.lock();
            state.bytes -= bytes;
            if let Some(holder) = state.consumers.get_mut(&consumer) {
                holder.records -= 1;
            }
        }
        self.again(consumer);
        // What is woken is on its way, and counts when it comes.
        let mut coming = 0;
        loop {
            let next = {
                let mut state = self.state.lock();
                match state.bytes + coming < self.most {
                    true => state.first(),
                    false => None,
                }
            };
            let Some((bytes, wake)) = next else { break };
            if wake() {
                coming += bytes;
            }
        }
        self.state.lock().forget(consumer);
    }
}

impl State {
    /// The first that waits for a consumer that holds nothing.
    fn idle(&mut self, consumer: u64) -> Option<(usize, Wake)> {
        let holder = self.consumers.get_mut(&consumer)?;
        let next = match holder.records {
            0 => holder.waiting.pop_front()?,
            _ => return None,
        };
        if let Some(at) = self.order.iter().position(|one| *one == consumer) {
            self.order.remove(at);
        }
        Some(next)
    }

    /// The first of all that wait.
    fn first(&mut self) -> Option<(usize, Wake)> {
        let consumer = self.order.pop_front()?;
        self.consumers.get_mut(&consumer)?.waiting.pop_front()
    }

    /// Forgets a consumer that neither holds anything nor waits.
    fn forget(&mut self, consumer: u64) {
        let holder = self.consumers.get(&consumer);
        if holder.is_some_and(|holder| holder.records == 0 && holder.waiting.is_empty()) {
            self.consumers.remove(&consumer);
        }
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.of.give_back(self.consumer, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn bytes_are_bounded_and_everybody_may_have_one() {
        let all = InHand::new(10);
        let woken = Arc::new(AtomicUsize::new(0));
        let wake = |counts: bool| {
            let woken = woken.clone();
            move || -> Wake {
                Box::new(move || {
                    woken.fetch_add(1, Ordering::Relaxed);
                    counts
                })
            }
        };
        let first = all.take(1, 8, wake(true)).unwrap();
        let second = all.take(1, 8, wake(true)).unwrap();
        for _ in 0..3 {
            assert!(all.take(1, 6, wake(true)).is_none(), "it is full");
        }
        let other = all.take(2, 20, wake(true)).unwrap();
        drop(first);
        assert_eq!(woken.load(Ordering::Relaxed), 0, "it still is");
        drop(other);
        // The second has 8: there is room for one that begins below the bound.
        assert_eq!(woken.load(Ordering::Relaxed), 1);
        drop(second);
        // One since it holds nothing, and what fits beside it was on its way already.
        assert_eq!(woken.load(Ordering::Relaxed), 3);
        assert!(all.state.lock().consumers.is_empty());
    }

    #[test]
    fn what_went_elsewhere_holds_nobody_up() {
        let all = InHand::new(1);
        let woken = Arc::new(AtomicUsize::new(0));
        let held = all.take(1, 1, || Box::new(|| true)).unwrap();
        for counts in [false, false, true, true] {
            let woken = woken.clone();
            let wake: Wake = Box::new(move || {
                woken.fetch_add(1, Ordering::Relaxed);
                counts
            });
            assert!(all.take(1, 5, || wake).is_none());
        }
        drop(held);
        assert!(woken.load(Ordering::Relaxed) >= 3);
        while all.again(1) {}
        assert_eq!(woken.load(Ordering::Relaxed), 4);
        all.release(1);
        assert!(all.state.lock().consumers.is_empty() && all.state.lock().order.is_empty());
    }
}
