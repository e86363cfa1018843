//! A thread that commits: jobs that wait together are handed to one function together, in the order they came, so that
//! they share a commit. What a job is and what committing means is the caller's.
//!
//! A panic in there ends neither the thread nor the process: the jobs of the group are dropped, so that whoever waits for
//! them is told, and the next group is committed as if nothing had been. What the caller knows beside its file it has to
//! learn anew (see [`survived`]).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;

use tokio::sync::mpsc;

use crate::StorageError;

/// Bounds of a [`GroupCommitter`], in jobs.
#[derive(Debug, Clone, Copy)]
pub struct GroupBounds {
    /// That may wait; who brings more waits, too.
    pub queue: usize,
    /// That are handed over together.
    pub group: usize,
}

impl Default for GroupBounds {
    fn default() -> Self {
        Self {
            queue: 1_024,
            group: 256,
        }
    }
}

/// Runs something whose panic must not end a thread that others depend on. `false` if it panicked: what it was changing in
/// memory is then half changed, and has to be read again from where it is kept.
#[must_use]
pub fn survived(work: impl FnOnce()) -> bool {
    let done = catch_unwind(AssertUnwindSafe(work)).is_ok();
    if !done {
        tracing::error!("a commit panicked; what it was to commit is reported as failed");
    }
    done
}

/// Handle of the thread. When it is dropped the thread ends after what is queued, and is waited for.
pub struct GroupCommitter<J> {
    jobs: Option<mpsc::Sender<J>>,
    thread: Option<JoinHandle<()>>,
}

impl<J: Send + 'static> GroupCommitter<J> {
    /// Starts the thread.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub fn start(
        name: &str,
        bounds: GroupBounds,
        commit: impl FnMut(&mut Vec<J>) + Send + 'static,
    ) -> Result<Self, StorageError> {
        Self::start_with_chores(name, bounds, commit, || false)
    }

    /// As [`Self::start`]; `chore` is called while no job waits, until it says that it has nothing left to do, and again
    /// after each group.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub fn start_with_chores(
        name: &str,
        bounds: GroupBounds,
        mut commit: impl FnMut(&mut Vec<J>) + Send + 'static,
        mut chore: impl FnMut() -> bool + Send + 'static,
    ) -> Result<Self, StorageError> {
        let (jobs, mut queue) = mpsc::channel::<J>(bounds.queue);
        let work = move || {
            let mut group = Vec::with_capacity(bounds.group);
            loop {
                let chores = || while queue.is_empty() && !queue.is_closed() && chore() {};
                // One that panics is tried again after the next group.
                let _ = survived(chores);
                if queue.blocking_recv_many(&mut group, bounds.group) == 0 {
                    return;
                }
                let _ = survived(|| commit(&mut group));
                group.clear();
            }
        };
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .stack_size(crate::STACK)
            .spawn(work);
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread.map_err(|error| StorageError::from_io(&error))?),
        })
    }

    /// Hands a job over; waits while the queue is full.
    ///
    /// # Errors
    /// [`StorageError::Closed`] when the thread has ended.
    pub async fn push(&self, job: J) -> Result<(), StorageError> {
        let jobs = self.jobs.as_ref().ok_or(StorageError::Closed)?;
        jobs.send(job).await.map_err(|_| StorageError::Closed)
    }

    /// Hands a job over if the queue has room, else drops it. `false`: it was dropped.
    pub fn try_push(&self, job: J) -> bool {
        let jobs = self.jobs.as_ref();
        jobs.is_some_and(|jobs| jobs.try_send(job).is_ok())
    }
}

impl<J> Drop for GroupCommitter<J> {
    fn drop(&mut self) {
        self.jobs = None;
        // A job may hold the last handle; the thread cannot wait for itself.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use parking_lot::Mutex;
    use tokio::sync::{Notify, oneshot};

    use super::*;

    #[tokio::test]
    async fn what_waits_together_is_handed_over_together_and_in_order() {
        let groups = Arc::new(Mutex::new(Vec::new()));
        let seen = groups.clone();
        let (open, gate) = oneshot::channel::<()>();
        let mut gate = Some(gate);
        let bounds = GroupBounds { queue: 8, group: 3 };
        let committer = GroupCommitter::start("test-commit", bounds, move |jobs| {
            if let Some(gate) = gate.take() {
                gate.blocking_recv().expect("opened");
            }
            seen.lock().push(jobs.clone());
        });
        let committer = committer.expect("a thread");
        for job in 0..6 {
            committer.push(job).await.expect("taken");
        }
        open.send(()).expect("waited for");
        // Waits for what is queued.
        drop(committer);
        let groups = groups.lock();
        assert_eq!(groups.concat(), [0, 1, 2, 3, 4, 5]);
        assert!(groups.len() < 6 && groups.iter().all(|group| group.len() <= 3));
    }

    #[tokio::test]
    async fn a_panic_costs_its_group_and_nothing_else() {
        let mut chores = 0;
        let chore = move || {
            chores += 1;
            assert!(chores != 2, "a chore, on purpose");
            false
        };
        let commit = |jobs: &mut Vec<(u8, oneshot::Sender<u8>)>| {
            for (number, done) in jobs.drain(..) {
                assert!(number != 1, "a commit, on purpose");
                let _ = done.send(number);
            }
        };
        let bounds = GroupBounds { queue: 8, group: 1 };
        let committer = GroupCommitter::start_with_chores("test-panic", bounds, commit, chore);
        let committer = committer.expect("a thread");
        for number in 0..4 {
            let (done, told) = oneshot::channel();
            committer.push((number, done)).await.expect("taken");
            assert_eq!(told.await.ok(), Some(number).filter(|number| *number != 1));
        }
    }

    #[tokio::test]
    async fn chores_are_done_while_nothing_waits_and_again_after_a_group() {
        let (done, idle) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let (count, tell) = (done.clone(), idle.clone());
        let chore = move || {
            let more = (count.fetch_add(1, Ordering::SeqCst) + 1) % 3 != 0;
            if !more {
                tell.notify_one();
            }
            more
        };
        let bounds = GroupBounds::default();
        let committer = GroupCommitter::start_with_chores("test-chores", bounds, |_| {}, chore);
        let committer = committer.expect("a thread");
        idle.notified().await;
        assert_eq!(done.load(Ordering::SeqCst), 3);
        committer.push(()).await.expect("taken");
        idle.notified().await;
        assert_eq!(done.load(Ordering::SeqCst), 6);
    }
}
