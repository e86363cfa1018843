//! A thread that commits: jobs that wait together are handed to one function together, in order. Used by
//! both stores of this service; knows neither.

use std::thread::JoinHandle;

use tokio::sync::mpsc;

use crate::error::VectorError;

/// Jobs that may wait; who brings more waits too.
const QUEUE: usize = 1_024;
/// Jobs handed over together.
const GROUP: usize = 256;

/// Handle of the thread. It ends, after what is queued, when this is dropped.
pub(crate) struct Commits<J> {
    jobs: Option<mpsc::Sender<J>>,
    thread: Option<JoinHandle<()>>,
}

impl<J: Send + 'static> Commits<J> {
    /// Starts the thread. `idle` is called when no job waits, until it has nothing left to do.
    pub(crate) fn start(
        name: &str,
        mut commit: impl FnMut(Vec<J>) + Send + 'static,
        mut idle: impl FnMut() -> bool + Send + 'static,
    ) -> Result<Self, VectorError> {
        let (jobs, mut queue) = mpsc::channel::<J>(QUEUE);
        let work = move || {
            let mut group = Vec::with_capacity(GROUP);
            let mut busy = true;
            loop {
                match queue.try_recv() {
                    Ok(job) => group.push(job),
                    Err(mpsc::error::TryRecvError::Empty) if busy => {
                        busy = idle();
                        continue;
                    }
                    Err(_) => match queue.blocking_recv() {
                        Some(job) => group.push(job),
                        None => return,
                    },
                }
                while group.len() < GROUP
                    && let Ok(job) = queue.try_recv()
                {
                    group.push(job);
                }
                commit(std::mem::take(&mut group));
                busy = true;
            }
        };
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(work);
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread.map_err(|_| VectorError::Closed)?),
        })
    }

    /// Hands a job over; waits while the queue is full.
    pub(crate) async fn push(&self, job: J) -> Result<(), VectorError> {
        let jobs = self.jobs.as_ref().ok_or(VectorError::Closed)?;
        jobs.send(job).await.map_err(|_| VectorError::Closed)
    }
}

impl<J> Drop for Commits<J> {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}
