//! The flow service of a process: its store, open while it serves, and what must not run at the
//! same time.

mod blueprints;
mod dead_letter;
mod doctor;
mod flows;
mod gauges;
mod generation;
mod presence;
mod resume;
mod rooms;
mod start;
mod stop;
mod stopping;
mod teardown;
mod why;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tg_mesh::tg_bus::pause::ONCE_UP;
use tg_mesh::{BusError, LeasedStore, Mesh};
use tg_schemas::{Error, FlowId, WorkspaceId};
use tokio::sync::{Notify, OwnedMutexGuard, RwLock, watch};

use crate::config::{Config, FLOW};
use crate::options::Waits;
use crate::store::Store;
use tg_schemas::flow_record::FlowRecord;

pub(crate) use resume::{RESUME, take_up};

/// A flow: workspace and id.
pub(crate) type FlowKey = (WorkspaceId, FlowId);

/// How long the watched configuration may take to show what this process wrote.
const SHOWN: Duration = Duration::from_secs(2);

/// Outcome of a stop for whoever asked for it.
type Stopped = Option<Result<serde_json::Value, Error>>;

/// The service.
pub(crate) struct Service {
    pub(crate) waits: Waits,
    store: Arc<LeasedStore<Store>>,
    flows_per_workspace: usize,
    /// Held from counting the flows of a workspace until a new one counts, too.
    beginning: tokio::sync::Mutex<()>,
    /// One change of a flow at a time.
    changing: Mutex<HashMap<FlowKey, Arc<tokio::sync::Mutex<()>>>>,
    /// Read while a start takes names, written while a stop decides which of its names others hold.
    names: RwLock<()>,
    /// Stops under way.
    stopping: Mutex<HashMap<FlowKey, watch::Receiver<Stopped>>>,
    /// Read while kept records are published, written once by a stop before it empties queues.
    publishing: RwLock<()>,
    /// Dead letters being stored at the moment.
    reading: AtomicUsize,
    /// A retry was kept.
    kept: Notify,
    /// Rooms of dead letters that the processes were told are full.
    full_rooms: tokio::sync::Mutex<Vec<String>>,
    /// Background tasks run.
    awake: AtomicBool,
    /// Starts of flows since which this process has heard who serves them. Each is forgotten with its flow.
    starts: Mutex<HashSet<u64>>,
    /// The watched configuration did not keep up once: from then on records are asked for.
    behind: AtomicBool,
}

impl Service {
    pub(crate) fn new(
        store: Arc<LeasedStore<Store>>,
        waits: Waits,
        flows_per_workspace: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            waits,
            flows_per_workspace,
            beginning: tokio::sync::Mutex::default(),
            store,
            changing: Mutex::default(),
            names: RwLock::default(),
            stopping: Mutex::default(),
            publishing: RwLock::default(),
            reading: AtomicUsize::new(0),
            kept: Notify::new(),
            full_rooms: tokio::sync::Mutex::default(),
            awake: AtomicBool::new(false),
            starts: Mutex::default(),
            behind: AtomicBool::new(false),
        })
    }

    /// The store. Fails while another process owns it.
    pub(crate) async fn store(&self) -> Result<Arc<Store>, Error> {
        self.store.get().await
    }

    /// Waits for the turn to change a flow.
    async fn turn(&self, key: &FlowKey) -> OwnedMutexGuard<()> {
        let lock = {
            let mut changing = self.changing.lock();
            changing.retain(|_, lock| Arc::strong_count(lock) > 1);
            changing.entry(key.clone()).or_default().clone()
        };
        lock.lock_owned().await
    }

    /// A flow's record.
    async fn record(&self, mesh: &Mesh, key: &FlowKey) -> Result<Option<FlowRecord>, Error> {
        let (workspace, flow) = key;
        let [text] = Config::new(mesh)
            .get(workspace, [(FLOW, flow.as_str())])
            .await?;
        Ok(text.map(|text| FlowRecord::read(&text).unwrap_or_default()))
    }

    /// Writes or removes (`None`) a flow's record, with other rows in the same change, and waits until
    /// the watched configuration shows it: what is decided from there is never older than what this
    /// process wrote.
    async fn write_record(
        &self,
        mesh: &Mesh,
        key: &FlowKey,
        record: Option<&FlowRecord>,
        rows: Vec<(crate::config::Key, String)>,
    ) -> Result<(), Error> {
        let (workspace, flow) = key;
        let config = Config::new(mesh);
        let name = (FLOW.to_owned(), flow.to_string());
        let text = record.map(FlowRecord::text);
        match &text {
            Some(text) => {
                config
                    .put(workspace, rows.into_iter().chain([(name, text.clone())]))
                    .await?
            }
            None => config.delete(workspace, [name]).await?,
        }
        let mut changes = mesh.config().changes();
        let shown = changes.wait_for(|_| {
            mesh.config()
                .get(workspace.as_str(), FLOW, flow.as_str())
                .as_deref()
                == text.as_deref()
        });
        if tokio::time::timeout(SHOWN, shown).await.is_err() {
            tracing::warn!(%workspace, %flow, "the watched configuration is out of date");
            self.behind.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// How many flows a workspace has.
    async fn records_of(&self, mesh: &Mesh, workspace: &WorkspaceId) -> Result<usize, Error> {
        if self.behind.load(Ordering::Acquire) {
            return Ok(Config::new(mesh).values(workspace, FLOW).await?.len());
        }
        Ok(mesh.config().values(workspace.as_str(), FLOW).len())
    }

    /// All flow records but those of reserved workspaces: workspace, id, text.
    async fn records(&self, mesh: &Mesh) -> Result<Vec<(String, String, Arc<str>)>, Error> {
        if self.behind.load(Ordering::Acquire) {
            let rows = Config::new(mesh).everywhere(FLOW).await?;
            return Ok(rows
                .into_iter()
                .map(|(ws, id, text)| (ws, id, text.into()))
                .collect());
        }
        let view = mesh.config();
        let mut records = Vec::new();
        for workspace in view.workspaces_with(FLOW) {
            let rows = view.values(&workspace, FLOW);
            records.extend(
                rows.iter()
                    .map(|(id, text)| (workspace.clone(), id.clone(), text.clone())),
            );
        }
        Ok(records)
    }

    /// Repeats a bus operation while the bus is away, within the patience.
    async fn patiently<T, F>(
        &self,
        mesh: &Mesh,
        mut operation: impl FnMut() -> F,
    ) -> Result<T, BusError>
    where
        F: Future<Output = Result<T, BusError>>,
    {
        let until = tokio::time::Instant::now() + self.waits.patience;
        let mut link = mesh.bus().link();
        loop {
            match operation().await {
                Err(BusError::Down)
                    if tokio::time::Instant::now() < until && !mesh.stopping().is_cancelled() =>
                {
                    let up = link.wait_for(|link| matches!(link, tg_mesh::bus::Link::Up { .. }));
                    tokio::select! {
                        _ = tokio::time::timeout_at(until, up) => {}
                        () = mesh.stopping().cancelled() => {}
                    }
                    tokio::time::sleep(ONCE_UP).await;
                }
                outcome => return outcome,
            }
        }
    }
}
