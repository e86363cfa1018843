//! What this process knows of steps under way: which it works on, which it has just published itself, which it has
//! done, and where askers of interrupted answers stand. All of it may be lost without harm: the ledger decides.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Entries kept of each kind; the oldest go first.
const KEEP: usize = 8192;
/// Steps in progress at once per flow: most of them only wait for a model.
pub(crate) const CONCURRENCY: usize = 1024;
/// Steps that are begun before their record comes: as many as records that are handled at once.
const AT_ONCE: usize = CONCURRENCY;
/// How long a step relies on what the step before it reserved without asking the ledger.
pub(super) const FRESH: Duration = Duration::from_secs(20);

/// A run and the number of one of its steps.
type Key = (Arc<str>, u32);

/// See the module.
pub(crate) struct StepLeases {
    state: Mutex<State>,
    /// A caller reported its position.
    told: Notify,
    room: Arc<Semaphore>,
}

impl Default for StepLeases {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            told: Notify::new(),
            room: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }
}

#[derive(Default)]
struct State {
    /// Who waits for the end of each. Bounded by the handlers that may run at once.
    busy: HashMap<Key, Arc<Notify>>,
    fresh: Recent<Key>,
    /// When the step before reserved their first call of the model.
    reserved: Recent<Key, Instant>,
    done: Recent<Key>,
    positions: HashMap<Arc<str>, u64>,
    positions_order: VecDeque<Arc<str>>,
}

/// The last [`KEEP`] entries.
struct Recent<K, V = ()> {
    known: HashMap<K, V>,
    order: VecDeque<K>,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self {
            known: HashMap::new(),
            order: VecDeque::new(),
        }
    }
}

impl<K: Eq + Hash + Clone, V> Recent<K, V> {
    fn add(&mut self, key: K, value: V) {
        if self.known.insert(key.clone(), value).is_none() {
            self.order.push_back(key);
            if self.order.len() > KEEP
                && let Some(oldest) = self.order.pop_front()
            {
                self.known.remove(&oldest);
            }
        }
    }
}

/// The lease of one step, for one handler of this process; given up when dropped.
pub(crate) struct StepLease {
    leases: Arc<StepLeases>,
    key: Key,
}

impl StepLease {
    /// Number of the step.
    pub(crate) fn step(&self) -> u32 {
        self.key.1
    }

    /// Gives the step up as done: a record of it that comes later has nothing to do.
    pub(crate) fn done(self) {
        self.leases.state.lock().done.add(self.key.clone(), ());
    }
}

impl Drop for StepLease {
    fn drop(&mut self) {
        if let Some(waiting) = self.leases.state.lock().busy.remove(&self.key) {
            waiting.notify_waiters();
        }
    }
}

impl StepLeases {
    /// Takes a step; `None` while another handler has it.
    pub(crate) fn take(self: &Arc<Self>, run: &str, step: u32) -> Option<StepLease> {
        let key: Key = (run.into(), step);
        match self.state.lock().busy.entry(key.clone()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(free) => {
                free.insert(Arc::default());
                let leases = self.clone();
                Some(StepLease { leases, key })
            }
        }
    }

    /// Whether a handler of this process has a step.
    pub(crate) fn is_under_way(&self, run: &str, step: u32) -> bool {
        self.state.lock().busy.contains_key(&(run.into(), step))
    }

    /// Takes a step as soon as no other handler has it.
    pub(crate) async fn take_soon(self: &Arc<Self>, run: &str, step: u32) -> StepLease {
        loop {
            if let Some(lease) = self.take(run, step) {
                return lease;
            }
            self.over(&(run.into(), step)).await;
        }
    }

    /// Waits for the end of what has a step now.
    async fn over(&self, key: &Key) {
        let over = {
            let state = self.state.lock();
            state
                .busy
                .get(key)
                .map(|waiting| waiting.clone().notified_owned())
        };
        if let Some(over) = over {
            over.await;
        }
    }

    /// Waits until no earlier step of a run is under way here.
    pub(crate) async fn earlier_steps_done(&self, run: &str, step: u32) {
        let run: Arc<str> = run.into();
        for earlier in 1..step {
            self.over(&(run.clone(), earlier)).await;
        }
    }

    /// Room to begin a step at once; none if too many are under way.
    pub(crate) fn room(&self) -> Option<OwnedSemaphorePermit> {
        self.room.clone().try_acquire_owned().ok()
    }

    /// A step is about to be published here for the first time, so it has no rows yet.
    pub(crate) fn publishing(&self, run: &str, step: u32) {
        self.state.lock().fresh.add((run.into(), step), ());
    }

    /// Whether a step was published here and is seen for the first time.
    pub(crate) fn is_fresh(&self, run: &str, step: u32) -> bool {
        let known = self.state.lock().fresh.known.remove(&(run.into(), step));
        known.is_some()
    }

    /// The first call of the model in a step is reserved.
    pub(crate) fn reserved(&self, run: &str, step: u32) {
        let now = Instant::now();
        self.state.lock().reserved.add((run.into(), step), now);
    }

    /// Whether it was just now, as far as this process knows. The second answer is no.
    pub(crate) fn is_reserved(&self, run: &str, step: u32) -> bool {
        let since = self.state.lock().reserved.known.remove(&(run.into(), step));
        since.is_some_and(|since| since.elapsed() < FRESH)
    }

    /// Whether a step was done here.
    pub(crate) fn is_done(&self, run: &str, step: u32) -> bool {
        self.state
            .lock()
            .done
            .known
            .contains_key(&(run.into(), step))
    }

    /// Whether all steps of a run before this one were done here.
    pub(crate) fn are_done(&self, run: &str, step: u32) -> bool {
        let run: Arc<str> = run.into();
        let state = self.state.lock();
        (1..step).all(|earlier| state.done.known.contains_key(&(run.clone(), earlier)))
    }

    /// No step counts as new, reserved or done any more.
    pub(crate) fn forget_steps(&self) {
        let mut state = self.state.lock();
        state.fresh = Recent::default();
        state.reserved = Recent::default();
        state.done = Recent::default();
    }

    /// An asker asks again and lacks the parts from `seq` on.
    pub(crate) fn asked_again(&self, id: &str, seq: u64) {
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
        self.told.notify_waiters();
    }

    /// Where the asker stands: waits for it to ask again, but not for ever.
    pub(crate) async fn position(&self, id: &str, patience: Duration) -> Option<u64> {
        let told = async {
            loop {
                let told = self.told.notified();
                if let Some(seq) = self.state.lock().positions.get(id) {
                    return *seq;
                }
                told.await;
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
        let leases: Arc<StepLeases> = Arc::default();
        let lease = leases.take("r", 1).unwrap();
        assert!(leases.take("r", 1).is_none());
        let second = leases.take("r", 2).unwrap();
        let waiting = leases.clone();
        let waiter = tokio::spawn(async move { waiting.earlier_steps_done("r", 2).await });
        tokio::task::yield_now().await;
        assert!(!waiter.is_finished());
        drop(lease);
        waiter.await.unwrap();
        let waiting = leases.clone();
        let waiter = tokio::spawn(async move { waiting.take_soon("r", 2).await });
        tokio::task::yield_now().await;
        assert!(!waiter.is_finished());
        drop(second);
        waiter.await.unwrap().done();
        assert!(leases.is_done("r", 2) && leases.take("r", 2).is_some());
        assert!(leases.are_done("r", 1) && !leases.are_done("r", 3));
        leases.take("r", 1).unwrap().done();
        assert!(leases.are_done("r", 3) && !leases.are_done("s", 3));
    }

    #[tokio::test]
    async fn a_position_is_waited_for() {
        let leases: Arc<StepLeases> = Arc::default();
        let waiting = leases.clone();
        let waiter =
            tokio::spawn(async move { waiting.position("q", Duration::from_secs(5)).await });
        tokio::task::yield_now().await;
        leases.asked_again("q", 7);
        assert_eq!(waiter.await.unwrap(), Some(7));
    }

    #[test]
    fn a_step_is_fresh_once() {
        let leases = StepLeases::default();
        leases.publishing("r", 2);
        assert!(leases.is_fresh("r", 2));
        assert!(!leases.is_fresh("r", 2));
        leases.publishing("r", 3);
        leases.reserved("r", 3);
        leases.forget_steps();
        assert!(!leases.is_fresh("r", 3) && !leases.is_reserved("r", 3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_counts_as_reserved_once_and_for_a_moment() {
        let leases = StepLeases::default();
        leases.reserved("r", 2);
        assert!(!leases.is_reserved("r", 3) && !leases.is_reserved("s", 2));
        assert!(leases.is_reserved("r", 2));
        assert!(!leases.is_reserved("r", 2));
        leases.reserved("r", 3);
        tokio::time::advance(FRESH).await;
        assert!(!leases.is_reserved("r", 3), "its record waited");
    }

    #[test]
    fn no_more_steps_are_begun_at_once_than_records_are_handled() {
        let leases = StepLeases::default();
        let room: Vec<_> = (0..AT_ONCE).filter_map(|_| leases.room()).collect();
        assert!(room.len() == AT_ONCE && leases.room().is_none());
        drop(room);
        assert!(leases.room().is_some());
    }
}
