//! Turns at writing long answers. A piece of one is written off the runtime's threads, one piece of a workspace at a time, and
//! workspaces take turns piece by piece. A piece is never interrupted. An answer asks for its next part when its piece is written,
//! so the work of translating its parts is limited by the same turns.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;
use tg_schemas::{Error, ErrorCode};
use tokio::sync::oneshot;

type Work = Box<dyn FnOnce() + Send>;

/// The turns of one workspace. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Lane {
    turns: Turns,
    workspace: Arc<str>,
}

impl Lane {
    /// Does something in a turn of the workspace.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let done = self.turns.run(&self.workspace, work).await;
        done.ok_or_else(|| Error::new(ErrorCode::Internal, "the answer could not be written"))
    }

    /// The same for what is long; all else is done at once.
    pub(crate) async fn run_long<T: Send + 'static>(
        &self,
        long: bool,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        match long {
            true => self.run(work).await,
            false => Ok(work()),
        }
    }
}

/// The queues of all workspaces. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Turns(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Threads that work at the same time.
    most: usize,
}

#[derive(Default)]
struct State {
    /// Of each workspace for which something waits or is done. Bounded by the answers that are open.
    waiting: HashMap<Arc<str>, VecDeque<Work>>,
    /// Workspaces for which something waits and nothing is done, in turn.
    next: VecDeque<Arc<str>>,
    threads: usize,
}

impl Default for Turns {
    fn default() -> Self {
        Self::new(std::thread::available_parallelism().map_or(1, usize::from))
    }
}

impl Turns {
    fn new(most: usize) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::default(),
            most,
        }))
    }

    /// The turns of a workspace.
    pub(crate) fn lane(&self, workspace: &str) -> Lane {
        Lane {
            turns: self.clone(),
            workspace: workspace.into(),
        }
    }

    /// Does something in a turn of a workspace. None where it panicked, or the process ends.
    async fn run<T: Send + 'static>(
        &self,
        workspace: &Arc<str>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (done, outcome) = oneshot::channel();
        let work = Box::new(move || {
            // A reader that has gone takes no turn from the others.
            if !done.is_closed() {
                drop(done.send(work()));
            }
        });
        if self.enter(workspace, work) {
            let turns = self.clone();
            tokio::task::spawn_blocking(move || while turns.take_one() {});
        }
        outcome.await.ok()
    }

    /// Lets something wait. Whether a thread has to be started for it.
    fn enter(&self, workspace: &Arc<str>, work: Work) -> bool {
        let mut state = self.0.state.lock();
        let state = &mut *state;
        if let Some(waiting) = state.waiting.get_mut(workspace) {
            waiting.push_back(work);
        } else {
            let waiting = VecDeque::from([work]);
            state.waiting.insert(workspace.clone(), waiting);
            state.next.push_back(workspace.clone());
        }
        let starts = !state.next.is_empty() && state.threads < self.0.most;
        if starts {
            state.threads += 1;
        }
        starts
    }

    /// Does what is next. False where nothing is, and then the thread counts no more.
    fn take_one(&self) -> bool {
        let taken = {
            let mut state = self.0.state.lock();
            let taken = state.take();
            if taken.is_none() {
                state.threads = state.threads.saturating_sub(1);
            }
            taken
        };
        let Some((workspace, work)) = taken else {
            return false;
        };
        // Whoever waits for what panics finds that nothing comes; the others have their turns.
        drop(catch_unwind(AssertUnwindSafe(work)));
        self.0.state.lock().done(workspace);
        true
    }
}

impl State {
    fn take(&mut self) -> Option<(Arc<str>, Work)> {
        let workspace = self.next.pop_front()?;
        let work = self.waiting.get_mut(&workspace)?.pop_front()?;
        Some((workspace, work))
    }

    /// The workspace comes behind all others that wait.
    fn done(&mut self, workspace: Arc<str>) {
        let waits = self.waiting.get(&workspace);
        if waits.is_some_and(|waiting| !waiting.is_empty()) {
            self.next.push_back(workspace);
        } else {
            self.waiting.remove(&workspace);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets each of these wait, and notes which was done when.
    fn entered(turns: &Turns, names: &[(&str, u32)]) -> Arc<Mutex<Vec<(String, u32)>>> {
        let order = Arc::new(Mutex::new(Vec::new()));
        for (workspace, number) in names {
            let (order, name) = (order.clone(), ((*workspace).to_owned(), *number));
            turns.enter(
                &Arc::from(*workspace),
                Box::new(move || order.lock().push(name)),
            );
        }
        order
    }

    #[test]
    fn a_workspace_with_much_to_write_comes_once_between_the_others() {
        let turns = Turns::new(1);
        let all = [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("c", 1), ("b", 2)];
        let order = entered(&turns, &all);
        while turns.take_one() {}
        let order: Vec<String> = order
            .lock()
            .iter()
            .map(|(name, number)| format!("{name}{number}"))
            .collect();
        assert_eq!(order, ["a1", "b1", "c1", "a2", "b2", "a3"]);
        let state = turns.0.state.lock();
        assert!(state.waiting.is_empty() && state.next.is_empty());
    }

    #[test]
    fn of_one_workspace_one_is_done_at_a_time_and_no_thread_is_started_for_another() {
        let turns = Turns::new(2);
        let a: Arc<str> = Arc::from("a");
        assert!(turns.enter(&a, Box::new(|| ())));
        let (workspace, _) = turns.0.state.lock().take().unwrap();
        // It is done at the moment.
        assert!(!turns.enter(&a, Box::new(|| ())));
        assert!(turns.0.state.lock().take().is_none());
        assert!(turns.enter(&Arc::from("b"), Box::new(|| ())));
        // There are two threads already.
        assert!(!turns.enter(&Arc::from("c"), Box::new(|| ())));
        turns.0.state.lock().done(workspace);
        let next: Vec<String> = std::iter::from_fn(|| turns.0.state.lock().take())
            .map(|(name, _)| name.to_string())
            .collect();
        assert_eq!(next, ["b", "c", "a"]);
    }

    #[tokio::test]
    async fn work_of_a_reader_that_has_gone_is_not_done() {
        let turns = Turns::new(1);
        let a: Arc<str> = Arc::from("a");
        // Without a thread: nothing is done until the test does it.
        turns.0.state.lock().threads = 1;
        let (gone, stays) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
        let count = |of: &Arc<Mutex<u32>>| {
            let of = of.clone();
            move || *of.lock() += 1
        };
        let mut waits = Box::pin(turns.run(&a, count(&gone)));
        assert!(futures::poll!(&mut waits).is_pending());
        drop(waits);
        let mut waits = Box::pin(turns.run(&a, count(&stays)));
        assert!(futures::poll!(&mut waits).is_pending());
        while turns.take_one() {}
        assert_eq!(waits.await, Some(()));
        assert_eq!((*gone.lock(), *stays.lock()), (0, 1));
    }

    #[tokio::test]
    async fn what_is_done_comes_back_and_what_panics_keeps_nobody_from_it() {
        let turns = Turns::new(1);
        let a: Arc<str> = Arc::from("a");
        assert_eq!(turns.run(&a, || 1).await, Some(1));
        assert_eq!(turns.run(&a, || -> u32 { panic!("a fault") }).await, None);
        assert_eq!(turns.run(&a, || 2).await, Some(2));
    }
}
