//! What this process knows of steps under way: which it works on, which it has just published itself, and
//! where askers of interrupted answers stand. All of it may be lost without harm.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Entries kept of each kind; the oldest go first.
const KEEP: usize = 8192;

type Key = (Arc<str>, u32);

/// See the module.
#[derive(Default)]
pub(super) struct Desk {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// Bounded by the handlers that may run at once.
    busy: HashSet<Key>,
    fresh: HashSet<Key>,
    fresh_order: VecDeque<Key>,
    positions: HashMap<Arc<str>, u64>,
    positions_order: VecDeque<Arc<str>>,
}

/// A step this process works on; given up when dropped.
pub(super) struct Claim {
    desk: Arc<Desk>,
    key: Key,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.desk.state.lock().busy.remove(&self.key);
        self.desk.changed.notify_waiters();
    }
}

impl Desk {
    /// Takes a step on; `None` while another handler has it.
    pub(super) fn claim(self: &Arc<Self>, run: &str, step: u32) -> Option<Claim> {
        let key: Key = (run.into(), step);
        let taken = self.state.lock().busy.insert(key.clone());
        taken.then(|| Claim {
            desk: self.clone(),
            key,
        })
    }

    /// A step is about to be published here for the first time, so it has no rows yet.
    pub(super) fn publishing(&self, run: &str, step: u32) {
        let key: Key = (run.into(), step);
        let mut state = self.state.lock();
        if state.fresh.insert(key.clone()) {
            state.fresh_order.push_back(key);
            if state.fresh_order.len() > KEEP
                && let Some(oldest) = state.fresh_order.pop_front()
            {
                state.fresh.remove(&oldest);
            }
        }
    }

    /// Whether a step was published here and is seen for the first time.
    pub(super) fn is_fresh(&self, run: &str, step: u32) -> bool {
        self.state.lock().fresh.remove(&(run.into(), step))
    }

    /// Takes a step on as soon as no other handler has it; `None` if that takes longer than the patience.
    pub(super) async fn claim_soon(
        self: &Arc<Self>,
        run: &str,
        step: u32,
        patience: Duration,
    ) -> Option<Claim> {
        let free = async {
            loop {
                let changed = self.changed.notified();
                if let Some(claim) = self.claim(run, step) {
                    return claim;
                }
                changed.await;
            }
        };
        tokio::time::timeout(patience, free).await.ok()
    }

    /// No step counts as new any more.
    pub(super) fn forget_fresh(&self) {
        let mut state = self.state.lock();
        state.fresh.clear();
        state.fresh_order.clear();
    }

    /// Waits until no earlier step of a run is under way here.
    pub(super) async fn earlier_steps_done(&self, run: &str, step: u32) {
        loop {
            let changed = self.changed.notified();
            {
                let state = self.state.lock();
                let busy = (1..step).any(|earlier| state.busy.contains(&(run.into(), earlier)));
                if !busy {
                    return;
                }
            }
            changed.await;
        }
    }

    /// An asker asks again and lacks the parts from `seq` on.
    pub(super) fn asked_again(&self, id: &str, seq: u64) {
        let id: Arc<str> = id.into();
        {
            let mut state = self.state.lock();
            if state.positions.insert(id.clone(), seq).is_none() {
                state.positions_order.push_back(id);
                if state.positions_order.len() > KEEP
                    && let Some(oldest) = state.positions_order.pop_front()
                {
                    state.positions.remove(&oldest);
                }
            }
        }
        self.changed.notify_waiters();
    }

    /// Where the asker stands: waits for it to ask again, but not for ever.
    pub(super) async fn position(&self, id: &str, patience: Duration) -> Option<u64> {
        let told = async {
            loop {
                let changed = self.changed.notified();
                if let Some(seq) = self.state.lock().positions.get(id) {
                    return *seq;
                }
                changed.await;
            }
        };
        tokio::time::timeout(patience, told).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_step_is_taken_once_and_later_ones_wait_for_it() {
        let desk: Arc<Desk> = Arc::default();
        let claim = desk.claim("r", 1).unwrap();
        assert!(desk.claim("r", 1).is_none());
        let second = desk.claim("r", 2).unwrap();
        let waiting = desk.clone();
        let waiter = tokio::spawn(async move { waiting.earlier_steps_done("r", 2).await });
        tokio::task::yield_now().await;
        assert!(!waiter.is_finished());
        drop(claim);
        waiter.await.unwrap();
        let waiting = desk.clone();
        let patience = Duration::from_secs(5);
        let waiter = tokio::spawn(async move { waiting.claim_soon("r", 2, patience).await });
        tokio::task::yield_now().await;
        assert!(!waiter.is_finished());
        drop(second);
        assert!(waiter.await.unwrap().is_some());
        let _held = desk.claim("r", 1).unwrap();
        let moment = Duration::from_millis(1);
        assert!(desk.claim_soon("r", 1, moment).await.is_none());
    }

    #[tokio::test]
    async fn a_position_is_waited_for() {
        let desk: Arc<Desk> = Arc::default();
        let waiting = desk.clone();
        let waiter =
            tokio::spawn(async move { waiting.position("q", Duration::from_secs(5)).await });
        tokio::task::yield_now().await;
        desk.asked_again("q", 7);
        assert_eq!(waiter.await.unwrap(), Some(7));
    }

    #[test]
    fn a_step_is_fresh_once() {
        let desk = Desk::default();
        desk.publishing("r", 2);
        assert!(desk.is_fresh("r", 2));
        assert!(!desk.is_fresh("r", 2));
        desk.publishing("r", 3);
        desk.forget_fresh();
        assert!(!desk.is_fresh("r", 3));
    }
}
