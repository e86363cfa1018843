//! The **reconciler**, what the librarian does by itself: it follows runs, publishes retractions, has stores drop what was
//! deleted and takes away what nobody needs. Each is a round over what the store says, so a crash anywhere
//! is made good by the next one.

use std::sync::Arc;
use std::time::Duration;

use tg_mesh::clock;
use tg_mesh::{LeasedStore, Mesh};
use tg_schemas::Error;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::librarian::Librarian;

/// Longest pause between two rounds.
const LOOK: Duration = Duration::from_secs(15);
/// Pause when something could not be done, and while the library is not this process's.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Pause between two tidyings.
const TIDY: Duration = Duration::from_secs(300);

/// Runs as long as the process, and works while the library is its own.
pub(crate) async fn run(mesh: Mesh, store: Arc<LeasedStore<Librarian>>, wake: Arc<Notify>) {
    let mut changes = mesh.config().changes();
    loop {
        changes.borrow_and_update();
        // Not held while nothing is done: the store must be free to go.
        let pause = match store.opened() {
            Some(librarian) => librarian.round(&mesh).await,
            None => RETRY_DELAY,
        };
        tokio::select! {
            () = wake.notified() => {}
            changed = changes.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(pause) => {}
        }
    }
}

impl Librarian {
    /// Does what can be done. Returns how long the next round has time.
    async fn round(&self, mesh: &Mesh) -> Duration {
        let mut pause = LOOK;
        let mut note = |what: &str, outcome: Result<bool, Error>| match outcome {
            Ok(false) => {}
            Ok(true) => pause = RETRY_DELAY,
            Err(error) => {
                tracing::debug!(%error, what, "not done yet");
                pause = RETRY_DELAY;
            }
        };
        note("runs", self.follow(mesh).await);
        note("retractions", self.deliver(mesh).await.map(|()| false));
        note("deletions", self.drop_pending(mesh).await);
        note("files", self.tidy().await);
        pause
    }

    async fn tidy(&self) -> Result<bool, Error> {
        let (orphans, tidied) = {
            let chores = self.chores.lock();
            (chores.orphans, chores.tidied)
        };
        if !orphans {
            self.library.remove_orphans().await?;
            self.chores.lock().orphans = true;
        }
        if tidied.is_none_or(|last| last.elapsed() >= TIDY) {
            let now = clock::millis();
            self.library.tidy(now).await?;
            self.chores.lock().tidied = Some(Instant::now());
        }
        Ok(false)
    }
}
