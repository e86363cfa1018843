//! Turns at evaluating queries. Fewer queries are evaluated at the same time than there are processors, so evaluation leaves a
//! processor to the runtime's threads. A query that has had its turn for a while hands it over to one that waits, and workspaces
//! come in turn, however many queries of each wait.
//!
//! Whoever waits does so inside an evaluation and may hold a lock of the store that the query with the turn needs. A query that keeps
//! its turn for too long while others wait therefore loses it: it goes on to its next step without one, and waits there.
//!
//! A query that was ended needs no turn: it only frees its place, for which others wait.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::time::Instant;

/// A query that takes no step for so long loses its turn.
const LONGEST: Duration = Duration::from_secs(1);

/// The turns of all queries of an engine.
pub(crate) struct Turns {
    state: Mutex<State>,
    /// Queries that are evaluated at the same time.
    most: usize,
    /// Times that queries lost their turns.
    lost: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Number of the last query.
    last: u64,
    /// The queries that have a turn, and since when.
    evaluated: Vec<(u64, Instant)>,
    /// The queries that wait, by workspace, in their order. Bounded by the places for queries.
    waiting: HashMap<Arc<str>, VecDeque<Arc<Waiter>>>,
    /// Workspaces of which a query waits, in their order.
    next: VecDeque<Arc<str>>,
}

struct Waiter {
    query: u64,
    called: AtomicBool,
    bell: Condvar,
}

/// The turns of one query.
pub(super) struct Turn {
    turns: Arc<Turns>,
    workspace: Arc<str>,
    query: u64,
    /// The query was ended: it waits for no turn. Written while the state is locked.
    ended: AtomicBool,
    /// What `lost` was when the query looked last whether it has its turn.
    looked: AtomicU64,
}

impl Default for Turns {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self::new(processors.saturating_sub(1))
    }
}

impl Turns {
    pub(super) fn new(most: usize) -> Self {
        Self {
            state: Mutex::default(),
            most: most.max(1),
            lost: AtomicU64::new(0),
        }
    }

    /// For a query of a workspace.
    pub(super) fn query(self: &Arc<Self>, workspace: &str) -> Turn {
        let mut state = self.state.lock();
        state.last += 1;
        Turn {
            turns: self.clone(),
            workspace: workspace.into(),
            query: state.last,
            ended: AtomicBool::new(false),
            looked: AtomicU64::new(self.lost.load(Ordering::Relaxed)),
        }
    }

    /// Takes the turns of queries that have had them for too long.
    fn end_long(&self, state: &mut State, now: Instant) {
        if state.end_long(now, self.most) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Turn {
    /// Waits for a turn, unless the query was ended.
    pub(super) fn take(&self) {
        let most = self.turns.most;
        let mut state = self.turns.state.lock();
        if self.ended.load(Ordering::Relaxed) {
            return;
        }
        let Some(waiter) = state.arrive(&self.workspace, self.query, most) else {
            return;
        };
        while !waiter.called.load(Ordering::Relaxed) {
            let waits = |_: &mut State| !waiter.called.load(Ordering::Relaxed);
            waiter.bell.wait_while_for(&mut state, waits, LONGEST);
            self.turns.end_long(&mut state, Instant::now());
        }
    }

    /// Gives the turn to the next query. Does nothing without a turn.
    pub(super) fn give_up(&self) {
        let mut state = self.turns.state.lock();
        state.leave(&self.workspace, self.query, self.turns.most);
    }

    /// Whether a query lost its turn since this one looked last. It may be this one, whose steps take long.
    pub(super) fn may_be_lost(&self) -> bool {
        self.turns.lost.load(Ordering::Relaxed) != self.looked.load(Ordering::Relaxed)
    }

    /// The query was ended. It waits no longer, now or later.
    pub(super) fn end(&self) {
        let mut state = self.turns.state.lock();
        self.ended.store(true, Ordering::Relaxed);
        state.withdraw(&self.workspace, self.query);
    }

    /// Whether the query has to stand in line again: another one waits, or it has lost its turn. Without the latter it would be
    /// evaluated beside as many as there may be, to its end if no other one comes.
    pub(super) fn must_wait(&self) -> bool {
        let lost = self.turns.lost.load(Ordering::Relaxed);
        self.looked.store(lost, Ordering::Relaxed);
        let state = self.turns.state.lock();
        !state.next.is_empty() || !state.has(self.query)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl State {
    /// A query wants a turn. None: it has one now.
    fn arrive(&mut self, workspace: &Arc<str>, query: u64, most: usize) -> Option<Arc<Waiter>> {
        let waiter = Arc::new(Waiter {
            query,
            called: AtomicBool::new(false),
            bell: Condvar::new(),
        });
        match self.waiting.get_mut(workspace) {
            Some(waiting) => waiting.push_back(waiter.clone()),
            None => {
                let waiting = VecDeque::from([waiter.clone()]);
                self.waiting.insert(workspace.clone(), waiting);
                self.next.push_back(workspace.clone());
            }
        }
        self.call(most);
        (!waiter.called.load(Ordering::Relaxed)).then_some(waiter)
    }

    /// A query gives up its turn. If others of its workspace wait, they come behind those of all other workspaces.
    fn leave(&mut self, workspace: &Arc<str>, query: u64, most: usize) {
        let before = self.evaluated.len();
        self.evaluated.retain(|(one, _)| *one != query);
        if self.evaluated.len() < before
            && let Some(at) = self.next.iter().position(|one| one == workspace)
        {
            let last = self.next.remove(at);
            self.next.extend(last);
        }
        self.call(most);
    }

    /// Takes a query out of those that wait, and wakes it.
    fn withdraw(&mut self, workspace: &Arc<str>, query: u64) {
        let Some(waiting) = self.waiting.get_mut(workspace) else {
            return;
        };
        let at = waiting.iter().position(|waiter| waiter.query == query);
        if let Some(waiter) = at.and_then(|at| waiting.remove(at)) {
            waiter.called.store(true, Ordering::Relaxed);
            waiter.bell.notify_one();
        }
        if waiting.is_empty() {
            self.waiting.remove(workspace);
            self.next.retain(|one| one != workspace);
        }
    }

    /// Whether a query has a turn.
    fn has(&self, query: u64) -> bool {
        self.evaluated.iter().any(|(one, _)| *one == query)
    }

    /// Takes the turns of queries that have had them for too long. Whether there are such queries.
    fn end_long(&mut self, now: Instant, most: usize) -> bool {
        let before = self.evaluated.len();
        self.evaluated
            .retain(|(_, since)| now.saturating_duration_since(*since) < LONGEST);
        let is_lost = self.evaluated.len() < before;
        self.call(most);
        is_lost
    }

    /// Gives free turns to those that wait.
    fn call(&mut self, most: usize) {
        while self.evaluated.len() < most {
            let Some(waiter) = self.first() else { return };
            self.evaluated.push((waiter.query, Instant::now()));
            waiter.called.store(true, Ordering::Relaxed);
            waiter.bell.notify_one();
        }
    }

    /// The next query. Its workspace comes behind all others that wait.
    fn first(&mut self) -> Option<Arc<Waiter>> {
        let workspace = self.next.pop_front()?;
        let waiting = self.waiting.get_mut(&workspace)?;
        let first = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(&workspace);
        } else {
            self.next.push_back(workspace);
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The queries that have a turn.
    fn evaluated(state: &State) -> Vec<u64> {
        state.evaluated.iter().map(|(query, _)| *query).collect()
    }

    #[test]
    fn a_query_of_another_workspace_waits_for_one_slice_of_many_queries() {
        let (a, b): (Arc<str>, Arc<str>) = (Arc::from("a"), Arc::from("b"));
        let mut state = State::default();
        assert!(state.arrive(&a, 1, 1).is_none());
        for query in 2..=40 {
            assert!(state.arrive(&a, query, 1).is_some());
        }
        let asked = state.arrive(&b, 41, 1).unwrap();
        // The query hands over, and comes behind the others of its workspace.
        state.leave(&a, 1, 1);
        assert!(state.arrive(&a, 1, 1).is_some());
        assert!(asked.called.load(Ordering::Relaxed));
        assert_eq!(evaluated(&state), [41], "one at a time");
        // The next query of the workspace comes after one of the other, too.
        assert!(state.arrive(&b, 42, 1).is_some());
        let mut order = Vec::new();
        for _ in 0..4 {
            let query = evaluated(&state)[0];
            order.push(query);
            state.leave(if query > 40 { &b } else { &a }, query, 1);
        }
        assert_eq!(order, [41, 2, 42, 3]);
    }

    #[test]
    fn all_queries_that_wait_have_their_turn_and_nothing_is_kept_of_them() {
        let a: Arc<str> = Arc::from("a");
        let mut state = State::default();
        let asked: Vec<_> = (1..=5).map(|query| state.arrive(&a, query, 2)).collect();
        assert_eq!(evaluated(&state), [1, 2]);
        state.leave(&a, 5, 2);
        assert_eq!(evaluated(&state), [1, 2], "without a turn none is given up");
        for query in 1..=5 {
            state.leave(&a, query, 2);
        }
        let called = |one: &Arc<Waiter>| one.called.load(Ordering::Relaxed);
        assert!(asked.iter().flatten().all(called));
        assert!(state.evaluated.is_empty() && state.waiting.is_empty() && state.next.is_empty());
    }

    #[test]
    fn a_query_that_takes_no_step_loses_its_turn() {
        let (a, b): (Arc<str>, Arc<str>) = (Arc::from("a"), Arc::from("b"));
        let mut state = State::default();
        assert!(state.arrive(&a, 1, 1).is_none());
        assert!(state.arrive(&b, 2, 1).is_some());
        let now = Instant::now();
        assert!(!state.end_long(now, 1));
        assert_eq!(evaluated(&state), [1]);
        assert!(state.end_long(now + LONGEST, 1));
        assert_eq!(evaluated(&state), [2]);
        state.leave(&a, 1, 1);
        assert_eq!(evaluated(&state), [2], "it has no turn to give up");
        state.leave(&b, 2, 1);
        assert!(state.evaluated.is_empty());
    }

    #[test]
    fn a_thread_that_waits_is_called() {
        let turns = Arc::new(Turns::new(1));
        let (first, second) = (turns.query("a"), turns.query("b"));
        first.take();
        assert!(!first.must_wait());
        let thread = std::thread::spawn(move || {
            second.take();
            second.query
        });
        while !first.must_wait() && !thread.is_finished() {
            std::thread::yield_now();
        }
        first.give_up();
        assert_eq!(thread.join().unwrap(), 2);
        assert!(turns.state.lock().evaluated.is_empty(), "dropped");
    }

    #[test]
    fn a_query_that_lost_its_turn_takes_another_one_though_no_query_waits() {
        let turns = Arc::new(Turns::new(1));
        let (first, second) = (turns.query("a"), turns.query("b"));
        first.take();
        assert!(!first.may_be_lost());
        turns.end_long(&mut turns.state.lock(), Instant::now() + LONGEST);
        second.take();
        assert!(!second.must_wait());
        assert!(first.may_be_lost());
        assert!(first.must_wait(), "two would be evaluated at a time");
        assert!(!first.may_be_lost(), "it has looked");
        second.give_up();
        first.take();
        assert!(!first.must_wait());
    }

    #[test]
    fn a_thread_whose_query_was_ended_is_woken_without_a_turn() {
        let turns = Arc::new(Turns::new(1));
        let (first, second) = (turns.query("a"), Arc::new(turns.query("b")));
        first.take();
        // However slow this machine is, the first query keeps its turn.
        let hour = Duration::from_secs(3_600);
        turns.state.lock().evaluated = vec![(first.query, Instant::now() + hour)];
        let waits = second.clone();
        let thread = std::thread::spawn(move || waits.take());
        while !first.must_wait() {
            std::thread::yield_now();
        }
        second.end();
        let until = Instant::now() + Duration::from_secs(60);
        while !thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(thread.is_finished());
        assert_eq!(evaluated(&turns.state.lock()), [first.query]);
        assert!(!first.must_wait());
    }

    #[test]
    fn a_query_that_was_ended_leaves_the_others_in_their_order() {
        let (a, b): (Arc<str>, Arc<str>) = (Arc::from("a"), Arc::from("b"));
        let mut state = State::default();
        assert!(state.arrive(&a, 1, 1).is_none());
        let [second, other] = [(&a, 2), (&b, 3)].map(|(of, query)| state.arrive(of, query, 1));
        assert!(state.arrive(&a, 4, 1).is_some());
        // One that has its turn keeps it to its next step.
        state.withdraw(&a, 1);
        assert_eq!(evaluated(&state), [1]);
        state.withdraw(&a, 2);
        state.withdraw(&b, 3);
        for waiter in [second, other] {
            assert!(waiter.unwrap().called.load(Ordering::Relaxed));
        }
        assert_eq!(state.next, [a.clone()]);
        state.leave(&a, 1, 1);
        assert_eq!(evaluated(&state), [4]);
        state.leave(&a, 4, 1);
        assert!(state.evaluated.is_empty() && state.waiting.is_empty() && state.next.is_empty());
    }
}
