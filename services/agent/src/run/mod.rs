//! Runs on the bus: a question begins a run, a step record takes one step, a ledger row comes before
//! whatever follows from it.
//!
//! [`request`] begins runs · [`step`] begins steps and receives their records · [`execution`] takes one step · [`think`]
//! asks the model · [`act`] uses the tool · [`leases`] is what this process knows of steps under way.

mod act;
mod execution;
mod leases;
mod request;
mod step;
mod think;
mod titles;
mod tools;

use std::sync::Arc;

use tg_mesh::OwnedStore;
use tg_schemas::Error;
use tg_storage::StorageError;

use crate::engine::decision::Ending;
use crate::options::Options;
use crate::store::Ledger;

pub use request::Questions;
pub use step::Steps;
pub use tools::WATCHED;

/// Name of the store, by which processes agree on its owner.
const STORE: &str = "agent-manager";

/// What the two handlers of the processor share.
pub struct Agent {
    options: Options,
    /// Open while this process is the agent's owner.
    pub(crate) store: Arc<OwnedStore<Ledger>>,
    leases: Arc<leases::StepLeases>,
    tools: tools::Tools,
}

impl Agent {
    /// With a ledger that is opened, off the runtime, when this process becomes its owner.
    pub fn new<F>(options: Options, open: F) -> Arc<Self>
    where
        F: Fn() -> Result<Ledger, StorageError> + Clone + Send + Sync + 'static,
    {
        let leases = Arc::<leases::StepLeases>::default();
        let known = leases.clone();
        let store = OwnedStore::blocking(STORE, move || {
            // Another process may have taken steps meanwhile that were new here.
            known.forget_steps();
            open()
        });
        Arc::new(Self {
            options,
            store,
            leases,
            tools: tools::Tools::default(),
        })
    }

    /// The ledger. Fails while another process owns it.
    async fn ledger(&self) -> Result<Arc<Ledger>, Error> {
        self.store.get().await
    }
}

/// Why a step does not lead to the next.
#[derive(Debug)]
enum Stop {
    /// The run ends here, without an answer.
    End(Ending),
    /// Something of ours failed: the step is tried again later and continues from its rows.
    Fault(Error),
}

impl From<StorageError> for Stop {
    fn from(error: StorageError) -> Self {
        tracing::warn!(%error, "the agent's ledger failed");
        Self::Fault(error.into())
    }
}

/// Milliseconds since the Unix epoch, as the ledger counts.
fn now_ms() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

#[cfg(test)]
mod tests;
