//! What the two handlers of the processor share: the ledger, what is under way, the tools of workspaces.

use std::sync::Arc;

use tg_clients::rendering::ReadyPrompts;
use tg_mesh::{Cx, Derived, LeasedStore};
use tg_schemas::Error;
use tg_storage::StorageError;
use tokio::sync::{Notify, Semaphore};

use super::leases::StepLeases;
use super::routers::Routers;
use super::servers::Servers;
use super::slots::Slots;
use super::tasks::Tasks;
use super::tools::Tools;
use super::transcript::Transcripts;
use crate::engine::guards::budget::Budgets;
use crate::engine::toolset::ToolSet;
use crate::options::Options;
use crate::programs::Pool;
use crate::sessions::{InMemory, Sessions};
use crate::store::Ledger;

/// Name of the store, by which processes agree on its owner.
pub(crate) const STORE: &str = "agent-manager";
/// Runs that are replayed at once, each with its record in memory; others wait.
const REPLAYS: usize = 4;
/// Workspaces whose prompts and budgets are kept ready at most.
const WORKSPACES: usize = 256;

/// See the module.
pub struct Agent {
    pub(crate) options: Options,
    /// Open while this process is the agent's owner.
    pub(crate) store: Arc<LeasedStore<Ledger>>,
    pub(crate) leases: Arc<StepLeases>,
    pub(crate) transcripts: Arc<Transcripts>,
    /// Told when a user answered what a run asks.
    pub(crate) answers: Notify,
    /// Runs that may be replayed at once.
    pub(crate) replays: Arc<Semaphore>,
    /// Prompts that are rendered here.
    pub(super) prompts: ReadyPrompts,
    pub(super) tools: Tools,
    /// What workspaces have configured of budgets.
    pub(super) budgets: Derived<Budgets>,
    pub(super) servers: Servers,
    pub(super) routers: Routers,
    pub(super) slots: Slots,
    pub(crate) tasks: Tasks,
    /// Agents that are programs.
    pub(super) programs: Arc<Pool>,
}

impl Agent {
    /// With a ledger that is opened, off the runtime, when this process becomes its owner.
    pub fn new<F>(options: Options, open: F) -> Arc<Self>
    where
        F: Fn() -> Result<Ledger, StorageError> + Clone + Send + Sync + 'static,
    {
        Self::with_sessions(options, open, Arc::new(InMemory::default()))
    }

    /// The same, with sessions that are kept elsewhere.
    pub fn with_sessions<F>(options: Options, open: F, sessions: Arc<dyn Sessions>) -> Arc<Self>
    where
        F: Fn() -> Result<Ledger, StorageError> + Clone + Send + Sync + 'static,
    {
        let leases = Arc::<StepLeases>::default();
        let most = usize::try_from(options.transcripts_mb << 20).unwrap_or(usize::MAX);
        let transcripts = Arc::new(Transcripts::within(most));
        let (known, told) = (leases.clone(), transcripts.clone());
        let store = LeasedStore::blocking(STORE, move || {
            // Another process may have taken steps meanwhile that were new here.
            known.forget_steps();
            told.forget();
            open()
        });
        Arc::new(Self {
            tasks: Tasks::new(options.delegate_tasks, sessions),
            programs: Pool::new(options.cli_processes),
            prompts: ReadyPrompts::new(WORKSPACES),
            tools: Tools::with(options.cli_agents.as_ref()),
            budgets: Derived::of(WORKSPACES),
            options,
            store,
            leases,
            transcripts,
            answers: Notify::new(),
            replays: Arc::new(Semaphore::new(REPLAYS)),
            servers: Servers::default(),
            routers: Routers::default(),
            slots: Slots::default(),
        })
    }

    /// The tools of a workspace.
    pub(crate) async fn tools(&self, cx: &Cx) -> Arc<ToolSet> {
        self.tools.of(cx, &self.servers.of(cx).await)
    }

    /// What a workspace adds to each prompt.
    pub(crate) fn additional_context(cx: &Cx) -> Option<String> {
        let value = cx
            .config()
            .get(cx.workspace(), "agent", "additional-context")?;
        Some(Self::read_context(&value))
    }

    /// It is written as plain text, or, by some tools, as a JSON string.
    pub(super) fn read_context(row: &str) -> String {
        serde_json::from_slice(row.as_bytes()).unwrap_or_else(|_| row.to_owned())
    }

    /// One with a ledger of its own, by which a run is replayed: what it keeps ends with it.
    pub(super) fn apart(options: Options) -> Result<Arc<Self>, StorageError> {
        let transcripts = Arc::new(Transcripts::within(0));
        Ok(Arc::new(Self {
            tasks: Tasks::new(0, Arc::new(InMemory::default())),
            programs: Pool::new(0),
            prompts: ReadyPrompts::new(WORKSPACES),
            tools: Tools::with(options.cli_agents.as_ref()),
            budgets: Derived::of(WORKSPACES),
            options,
            store: LeasedStore::opened_with(STORE, Ledger::in_memory()?),
            leases: Arc::default(),
            transcripts,
            answers: Notify::new(),
            replays: Arc::new(Semaphore::new(0)),
            servers: Servers::default(),
            routers: Routers::default(),
            slots: Slots::default(),
        }))
    }

    /// The ledger. Fails while another process owns it.
    pub(crate) async fn ledger(&self) -> Result<Arc<Ledger>, Error> {
        self.store.get().await
    }
}
