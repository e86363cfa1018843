//! Searches in progress: no more threads than the machine has processors, and those who wait for the same
//! space are answered together, in one pass over it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::cache::Shared;
use super::schema::Space;
use crate::engine::scan::Query;
use crate::engine::top::Candidate;
use crate::error::VectorError;

/// From so many points on, a pass is spread over threads.
const SPREAD: i64 = 8_192;
/// From so many points on, a pass takes longer than others of the same question take to come: it waits for them.
const LARGE: i64 = 65_536;
const LINGER: Duration = Duration::from_millis(1);
/// Most queries of a pass.
const TOGETHER: usize = 32;

struct Waiting {
    query: Query,
    found: oneshot::Sender<Vec<Candidate>>,
}

/// The searches.
pub(crate) struct Scans {
    threads: Arc<Semaphore>,
    /// By space. Who has a thread takes what waits; who left before is answered in vain.
    waiting: Mutex<HashMap<i64, Vec<Waiting>>>,
}

impl Scans {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            threads: Arc::new(Semaphore::new(threads.max(1))),
            waiting: Mutex::default(),
        }
    }

    /// The best of a space for a query.
    pub(crate) async fn search(
        &self,
        space: &Space,
        index: Shared,
        query: Query,
    ) -> Result<Vec<Candidate>, VectorError> {
        let (found, mut answer) = oneshot::channel();
        let waiting = Waiting { query, found };
        self.waiting
            .lock()
            .entry(space.id)
            .or_default()
            .push(waiting);
        if space.points >= LARGE {
            tokio::time::sleep(LINGER).await;
        }
        loop {
            let thread = self.threads.clone().acquire_owned();
            let thread = tokio::select! {
                answer = &mut answer => return answer.map_err(|_| VectorError::Closed),
                thread = thread => thread.map_err(|_| VectorError::Closed)?,
            };
            let taken = self.take(space.id);
            if taken.is_empty() {
                // Somebody else's pass answers this one.
                drop(thread);
                return answer.await.map_err(|_| VectorError::Closed);
            }
            self.pass(index.clone(), taken, thread, space.points >= SPREAD);
        }
    }

    /// Starts a pass for queries of one space.
    fn pass(&self, index: Shared, taken: Vec<Waiting>, first: OwnedSemaphorePermit, spread: bool) {
        metrics::histogram!("tg_vectors_pass_queries").record(taken.len() as f64);
        let all = self.threads.clone();
        tokio::task::spawn_blocking(move || {
            let mut threads = vec![first];
            if spread {
                // What is free helps; what is not is busy with another pass. Whoever waited for a thread in vain
                // has given it back by now.
                while let Ok(more) = all.clone().try_acquire_owned() {
                    threads.push(more);
                }
            }
            let (queries, askers): (Vec<Query>, Vec<_>) =
                taken.into_iter().map(|one| (one.query, one.found)).unzip();
            let found = index.read().search(queries, threads.len());
            drop(threads);
            for (found, asker) in found.into_iter().zip(askers) {
                // Nobody may be waiting any more.
                let _ = asker.send(found);
            }
        });
    }

    fn take(&self, space: i64) -> Vec<Waiting> {
        let mut waiting = self.waiting.lock();
        let Some(all) = waiting.get_mut(&space) else {
            return Vec::new();
        };
        let taken = all.drain(..all.len().min(TOGETHER)).collect();
        if all.is_empty() {
            waiting.remove(&space);
        }
        taken
    }
}
