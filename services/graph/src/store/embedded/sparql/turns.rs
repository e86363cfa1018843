//! Turns at evaluating queries. Fewer queries are evaluated at the same time than there are processors, so evaluation leaves a
//! processor to the runtime's threads. A query that has had its turn for a while hands it over to one that waits, and workspaces
//! come in turn, however many queries of each wait.
//!
//! Whoever waits does so inside an evaluation and may hold a lock of the store that the query with the turn needs. A query that keeps
//! its turn for too long while others wait therefore loses it: it goes on, but counts no more.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
}

impl Default for Turns {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self::new(processors.saturating_sub(1))
    }
}

impl Turns {
    fn new(most: usize) -> Self {
        Self {
            state: Mutex::default(),
            most: most.max(1),
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
        }
    }
}

impl Turn {
    /// Waits for a turn.
    pub(super) fn take(&self) {
        let most = self.turns.most;
        let mut state = self.turns.state.lock();
        let Some(waiter) = state.arrive(&self.workspace, self.query, most) else {
            return;
        };
        while !waiter.called.load(Ordering::Relaxed) {
            let waits = |_: &mut State| !waiter.called.load(Ordering::Relaxed);
            waiter.bell.wait_while_for(&mut state, waits, LONGEST);
            state.end_long(Instant::now(), most);
        }
    }

    /// Gives the turn to the next query. Does nothing without a turn.
    pub(super) fn give_up(&self) {
        let mut state = self.turns.state.lock();
        state.leave(&self.workspace, self.query, self.turns.most);
    }

    /// Whether another query waits for a turn.
    pub(super) fn is_wanted(&self) -> bool {
        !self.turns.state.lock().next.is_empty()
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

    /// Takes the turns of queries that have had them for too long.
    fn end_long(&mut self, now: Instant, most: usize) {
        self.evaluated
            .retain(|(_, since)| now.saturating_duration_since(*since) < LONGEST);
        self.call(most);
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
        state.end_long(now, 1);
        assert_eq!(evaluated(&state), [1]);
        state.end_long(now + LONGEST, 1);
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
        assert!(!first.is_wanted());
        let thread = std::thread::spawn(move || {
            second.take();
            second.query
        });
        while !first.is_wanted() && !thread.is_finished() {
            std::thread::yield_now();
        }
        first.give_up();
        assert_eq!(thread.join().unwrap(), 2);
        assert!(turns.state.lock().evaluated.is_empty(), "dropped");
    }
}
