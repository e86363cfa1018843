//! Work that takes long: checks of payloads by their schemas, and what is compiled of them. It runs beside the runtime, one
//! piece of a workspace at a time.

use std::sync::Arc;

use tg_mesh::fair::{Pool, Share};
use tg_schemas::{Error, ErrorCode};

/// Pieces of work of all workspaces at a time.
const AT_ONCE: usize = 64;

/// The permits of all workspaces.
#[derive(Clone)]
pub(super) struct Checks(Pool);

/// The permit of a workspace.
pub(super) struct Permit(Share);

impl Default for Checks {
    fn default() -> Self {
        Self(Pool::new(AT_ONCE, 1))
    }
}

impl Checks {
    /// Waits until nothing of the workspace runs.
    pub(super) async fn permit(&self, workspace: &str) -> Result<Permit, Error> {
        let share = self.0.take(&Arc::from(workspace), 1).await;
        share.map(Permit).map_err(|_| stopped())
    }
}

impl Permit {
    /// Runs the work. It cannot be stopped: the permit is back when it has ended, also where nobody waits for it any more.
    pub(super) async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let Self(share) = self;
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(share);
            done
        });
        done.await.map_err(|_| stopped())
    }
}

fn stopped() -> Error {
    Error::new(ErrorCode::Internal, "the check did not come to its end")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use parking_lot::Mutex;
    use tg_testkit::flow::SOON;

    use super::*;

    /// The runtime has one thread: work that ran on it would wait in vain for what another task sends.
    #[tokio::test]
    async fn work_leaves_the_runtime_and_one_of_a_workspace_waits_for_another() {
        let checks = Checks::default();
        let (lets, waits) = sync_channel(1);
        let order: Arc<Mutex<Vec<&str>>> = Arc::default();
        let notes = |name: &'static str| {
            let order = order.clone();
            move || order.lock().push(name)
        };
        let (first, second, other) = (notes("first"), notes("second"), notes("other"));
        let first = async {
            let permit = checks.permit("a").await?;
            let work = move || {
                let let_go = waits.recv_timeout(SOON).is_ok();
                first();
                let_go
            };
            permit.run(work).await
        };
        let second = async { checks.permit("a").await?.run(second).await };
        let other = async {
            let done = checks.permit("b").await?.run(other).await;
            lets.send(()).ok();
            done
        };
        let (first, second, other) = tokio::join!(first, second, other);
        assert_eq!((first, second, other), (Ok(true), Ok(()), Ok(())));
        assert_eq!(*order.lock(), ["other", "first", "second"]);
    }
}
