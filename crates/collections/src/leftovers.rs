//! Removes, step by step, what a store has let go of and still holds. Each step is a transaction of its own, so that
//! writers wait for none for long.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use tg_mesh::{LeasedStore, Mesh, TaskKind};
use tokio::sync::Notify;

/// When a store is looked at for what it still holds.
pub struct Looks {
    /// Longest pause between two looks.
    pub every: Duration,
    /// Ends a pause.
    pub wake: Arc<Notify>,
}

impl Looks {
    /// Looks that only time brings about.
    pub fn every(every: Duration) -> Self {
        let wake = Arc::default();
        Self { every, wake }
    }
}

/// Removes what there is until the process stops. `step` removes some of it, and says whether there may be more.
pub fn start<S, E, F>(
    mesh: &Mesh,
    name: &'static str,
    store: Arc<LeasedStore<S>>,
    looks: Looks,
    step: impl Fn(Arc<S>) -> F + Send + Sync + 'static,
) where
    S: Send + Sync + 'static,
    E: Display + Send + 'static,
    F: Future<Output = Result<bool, E>> + Send + 'static,
{
    let own = mesh.clone();
    mesh.spawn(TaskKind::Background, async move {
        let stopping = || own.stopping().is_cancelled();
        loop {
            // A process that stands by must not open the store, nor hold it while nothing is done.
            if let Some(store) = store.opened()
                && let Err(error) = all(|| step(store.clone()), stopping).await
            {
                tracing::warn!(store = name, %error, "what was let go of is not removed yet");
            }
            tokio::select! {
                () = looks.wake.notified() => {}
                () = tokio::time::sleep(looks.every) => {}
                () = own.stopping().cancelled() => return,
            }
        }
    });
}

/// Takes steps until nothing is left, one fails, or the process stops.
async fn all<E, F>(step: impl Fn() -> F, stopping: impl Fn() -> bool) -> Result<(), E>
where
    F: Future<Output = Result<bool, E>>,
{
    while !stopping() && step().await? {
        tokio::task::yield_now().await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Steps of a store that still holds so much, and fails once so much is left.
    async fn steps(holds: u32, fails: Option<u32>, stops: Option<u32>) -> (Result<(), u32>, u32) {
        let left = Cell::new(holds);
        let step = || async {
            if fails == Some(left.get()) {
                return Err(left.get());
            }
            left.set(left.get().saturating_sub(1));
            Ok(left.get() > 0)
        };
        let done = all(step, || stops == Some(left.get())).await;
        (done, left.get())
    }

    #[tokio::test]
    async fn steps_go_on_until_nothing_is_left() {
        assert_eq!(steps(5, None, None).await, (Ok(()), 0));
        assert_eq!(steps(0, None, None).await, (Ok(()), 0));
        assert_eq!(steps(5, Some(3), None).await, (Err(3), 3));
        assert_eq!(steps(5, None, Some(2)).await, (Ok(()), 2));
    }
}
