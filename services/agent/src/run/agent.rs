//! What the two handlers of the processor share: the ledger, what is under way, the tools of workspaces.

use std::sync::Arc;

use tg_mesh::LeasedStore;
use tg_schemas::Error;
use tg_storage::StorageError;

use super::leases::StepLeases;
use super::tools::Tools;
use crate::options::Options;
use crate::store::Ledger;

/// Name of the store, by which processes agree on its owner.
pub(crate) const STORE: &str = "agent-manager";

/// See the module.
pub struct Agent {
    pub(crate) options: Options,
    /// Open while this process is the agent's owner.
    pub(crate) store: Arc<LeasedStore<Ledger>>,
    pub(crate) leases: Arc<StepLeases>,
    pub(super) tools: Tools,
}

impl Agent {
    /// With a ledger that is opened, off the runtime, when this process becomes its owner.
    pub fn new<F>(options: Options, open: F) -> Arc<Self>
    where
        F: Fn() -> Result<Ledger, StorageError> + Clone + Send + Sync + 'static,
    {
        let leases = Arc::<StepLeases>::default();
        let known = leases.clone();
        let store = LeasedStore::blocking(STORE, move || {
            // Another process may have taken steps meanwhile that were new here.
            known.forget_steps();
            open()
        });
        Arc::new(Self {
            options,
            store,
            leases,
            tools: Tools::default(),
        })
    }

    /// The ledger. Fails while another process owns it.
    pub(crate) async fn ledger(&self) -> Result<Arc<Ledger>, Error> {
        self.store.get().await
    }
}
