//! The one endpoint through which tasks start: every task has a kind that says what its end means.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use metrics::Counter;
use tokio::runtime::{EnterGuard, Handle};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What a task is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskKind {
    /// Handles one message; awaited when the process drains.
    Handler,
    /// Runs as long as the process (timers, watchers); ends at shutdown.
    Background,
    /// Runs as long as the process and then writes down what the next start must know: told by the process that it
    /// stops, awaited at shutdown, before stores are let go.
    Closing,
    /// Serves one client connection; ends at shutdown after what is in flight.
    Connection,
}

impl TaskKind {
    /// Metric label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Handler => "handler",
            Self::Background => "background",
            Self::Closing => "closing",
            Self::Connection => "connection",
        }
    }
}

/// What a task does, of one type whatever it is: what starts, polls and drops a task in the runtime is compiled once and not for each
/// future. That is 2 KB for each.
type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Starts tasks and ends them.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    handlers: TaskTracker,
    others: TaskTracker,
    shutdown: CancellationToken,
    /// By kind; each is looked up once.
    started: Arc<[OnceLock<Counter>; 4]>,
}

impl Tasks {
    /// Starts a task. `Background` tasks are dropped at shutdown; others see [`Tasks::shutdown`].
    pub fn spawn<F>(&self, kind: TaskKind, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.start(kind, Box::pin(future));
    }

    fn start(&self, kind: TaskKind, work: Work) {
        let count = || metrics::counter!("tg_tasks_total", "kind" => kind.label());
        self.started[kind as usize].get_or_init(count).increment(1);
        match kind {
            TaskKind::Handler => {
                self.handlers.spawn(work);
            }
            TaskKind::Closing | TaskKind::Connection => {
                self.others.spawn(work);
            }
            TaskKind::Background => {
                let shutdown = self.shutdown.clone();
                self.others.spawn(async move {
                    tokio::select! {
                        () = shutdown.cancelled() => {}
                        () = work => {}
                    }
                });
            }
        }
    }

    /// Cancelled when the process stops.
    pub fn shutdown(&self) -> &CancellationToken {
        &self.shutdown
    }

    /// Waits until no handler runs.
    pub async fn handlers_idle(&self) {
        self.handlers.close();
        self.handlers.wait().await;
        self.handlers.reopen();
    }

    /// Handlers in progress.
    pub fn handlers(&self) -> usize {
        self.handlers.len()
    }

    /// Ends background tasks and waits for the rest.
    pub async fn finish(&self) {
        self.shutdown.cancel();
        self.handlers.close();
        self.others.close();
        self.handlers.wait().await;
        self.others.wait().await;
    }
}

/// [`Tasks`] for who may be called outside of the runtime, by the threads of a client library.
#[derive(Debug, Clone)]
pub(crate) struct Starter {
    tasks: Tasks,
    runtime: Handle,
}

impl Starter {
    /// Starts tasks in the runtime that this is called in.
    pub(crate) fn here(tasks: Tasks) -> Self {
        let runtime = Handle::current();
        Self { tasks, runtime }
    }

    /// As [`Tasks::spawn`], from any thread.
    pub(crate) fn spawn<F>(&self, kind: TaskKind, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let _context = self.enter();
        self.tasks.spawn(kind, future);
    }

    /// Until the guard is dropped, this thread is one of the runtime's.
    pub(crate) fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    /// A thread of somebody else starts one, and it is counted among those that are waited for.
    #[tokio::test]
    async fn a_task_from_outside_of_the_runtime_is_one_of_them() {
        let (tasks, ended) = (Tasks::default(), Arc::new(AtomicUsize::new(0)));
        let (starter, count) = (Starter::here(tasks.clone()), ended.clone());
        let thread = std::thread::spawn(move || {
            starter.spawn(TaskKind::Connection, async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                count.fetch_add(1, Ordering::Relaxed);
            });
        });
        thread.join().unwrap();
        tasks.finish().await;
        assert_eq!(ended.load(Ordering::Relaxed), 1);
    }

    /// Three tasks that need a moment more once the process stops: which of them come to their end.
    #[tokio::test(start_paused = true)]
    async fn what_closes_or_is_connected_comes_to_its_end_and_a_background_task_is_dropped() {
        for (kind, ends) in [
            (TaskKind::Background, 0),
            (TaskKind::Closing, 1),
            (TaskKind::Connection, 1),
        ] {
            let (tasks, ended) = (Tasks::default(), Arc::new(AtomicUsize::new(0)));
            let (stops, count) = (tasks.shutdown().clone(), ended.clone());
            tasks.spawn(kind, async move {
                stops.cancelled().await;
                tokio::time::sleep(Duration::from_millis(100)).await;
                count.fetch_add(1, Ordering::Relaxed);
            });
            tokio::task::yield_now().await;
            tasks.finish().await;
            assert_eq!(ended.load(Ordering::Relaxed), ends, "{kind:?}");
        }
    }
}
