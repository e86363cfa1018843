//! What this process hosts: has each processor attached wherever configuration says, as configuration
//! changes, and detaches all of them when the process stops.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::attached::Hosted;
use crate::config_watch::Changed;
use crate::leases::LeaderElection;
use crate::mesh::Mesh;
use crate::processor::Processor;

/// How often an attach that failed is tried again.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Everything this process hosts.
#[derive(Default)]
pub(crate) struct Runtime {
    all: RwLock<Vec<Arc<Hosted>>>,
    retry: Arc<Notify>,
    elections: LeaderElection,
}

impl Runtime {
    /// Hosts a processor; attached is what can be now.
    pub(crate) async fn host(&self, mesh: &Mesh, mut processor: Processor) {
        let owner = processor.owner.take();
        let claim = owner.as_ref().map(|owner| owner.store.as_str().into());
        let served = Arc::new(Hosted::new(processor, claim, self.retry.clone()));
        self.all.write().push(served.clone());
        match owner {
            Some(owner) => {
                self.elections
                    .join(mesh, &owner.store, owner.owned, &served)
                    .await;
            }
            None => served.begin(mesh).await,
        }
    }

    /// Follows config changes until the process stops.
    pub(crate) async fn run(&self, mesh: &Mesh, mut changes: mpsc::Receiver<Changed>) {
        let mut failed = false;
        loop {
            let change = tokio::select! {
                change = changes.recv() => match change {
                    Some(change) => Some(change),
                    None => return,
                },
                () = self.retry.notified() => None,
                () = tokio::time::sleep(RETRY_DELAY), if failed => None,
                () = mesh.stopping().cancelled() => return,
            };
            failed = false;
            let all = self.all.read().clone();
            for served in all {
                if served.concerns(change.as_ref())
                    && served.sync(mesh, change.as_ref()).await.is_err()
                {
                    failed = true;
                }
            }
        }
    }

    /// Detaches everything until `end`. What was hosted last goes first: it asks what was hosted before it.
    pub(crate) async fn detach_all(&self, mesh: &Mesh, end: Instant) {
        let all = self.all.read().clone();
        for served in all.iter().rev() {
            served.leave(mesh, end).await;
        }
    }

    /// Lets the stores of this process go.
    pub(crate) async fn release_all(&self) {
        self.elections.release_all().await;
    }
}
