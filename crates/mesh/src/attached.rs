//! One hosted processor and its attached instances: made what configuration says, detached in order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tg_schemas::flow_record::{FlowRecord, KIND as FLOW, Status};
use tg_schemas::msg::HostedProcessor;
use tg_schemas::processors::TopicScope;
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;

use crate::announce;
use crate::config_view::WORKSPACES;
use crate::config_watch::Changed;
use crate::instance::{At, Instance};
use crate::instance_state::InstanceState;
use crate::mesh::Mesh;
use crate::processor::{Processor, row_kind};
use crate::wiring::{Wiring, same_wiring};
use tg_bus::{BusError, TaskKind};
use tg_schemas::Topic;

/// How long a detach waits for what is in progress.
const DETACH: Duration = Duration::from_secs(10);
/// How long the bus may take to stop consumers.
const STOP: Duration = Duration::from_secs(2);
/// How often a topic that may still be in use is tried to be removed, and the pause between.
const REMOVALS: usize = 20;
const REMOVAL_PAUSE: Duration = Duration::from_millis(100);
/// Instances attached at once.
const PARALLEL: usize = 32;

/// A hosted processor.
pub(crate) struct Hosted {
    pub(crate) id: String,
    wiring: Wiring,
    /// Config types that its handlers look at.
    watches: Vec<String>,
    serving: AtomicBool,
    /// Those types have not all been read yet.
    unread: AtomicBool,
    /// Has everything looked at again soon.
    retry: Arc<Notify>,
    instances: Mutex<BTreeMap<At, Instance>>,
}

impl Hosted {
    pub(crate) fn new(processor: Processor, claim: Option<Arc<str>>, retry: Arc<Notify>) -> Self {
        Self {
            id: processor.id.to_owned(),
            watches: processor.watched_types(),
            wiring: Wiring::of(processor, claim),
            serving: AtomicBool::new(false),
            unread: AtomicBool::new(false),
            retry,
            instances: Mutex::default(),
        }
    }

    /// Serves from now on; what cannot be attached now is tried again.
    pub(crate) async fn begin(&self, mesh: &Mesh) {
        self.serving.store(true, Ordering::Release);
        self.say(mesh, "serving").await;
        if self.sync(mesh, None).await.is_err() {
            self.retry.notify_one();
        }
    }

    /// Serves no more, and says that it stands by.
    pub(crate) async fn end(&self, mesh: &Mesh) {
        self.serving.store(false, Ordering::Release);
        let all = std::mem::take(&mut *self.instances.lock().await);
        let end = Instant::now() + DETACH;
        detach(mesh, all.into_values().collect(), end).await;
        self.stand_by(mesh).await;
    }

    /// Says that another process serves.
    pub(crate) async fn stand_by(&self, mesh: &Mesh) {
        self.say(mesh, "standby").await;
    }

    /// Detaches everything; what is in progress may end until `end`.
    pub(crate) async fn leave(&self, mesh: &Mesh, end: Instant) {
        self.serving.store(false, Ordering::Release);
        // An attach in progress gives up when the process stops; a bus that hangs does not hold this up.
        let Ok(mut instances) = tokio::time::timeout_at(end, self.instances.lock()).await else {
            return;
        };
        let all = std::mem::take(&mut *instances);
        detach(mesh, all.into_values().collect(), end).await;
    }

    async fn say(&self, mesh: &Mesh, state: &str) {
        let hosted = HostedProcessor {
            id: self.id.clone(),
            state: state.to_owned(),
            flows: Vec::new(),
        };
        announce::tell(mesh, "attached", || Some(vec![hosted])).await;
    }

    /// Whether a config change may change what is attached.
    pub(crate) fn concerns(&self, change: Option<&Changed>) -> bool {
        let Some(change) = change else { return true };
        if self.unread.load(Ordering::Acquire) {
            return true;
        }
        change.of(&row_kind(&self.id)) || change.of(WORKSPACES.1) || change.of(FLOW)
    }

    fn has(&self, wanted: TopicScope) -> bool {
        self.wiring.has(wanted)
    }

    /// Whether all that the handlers look at has been read. Another processor may have had the rows read that say where
    /// this one is attached; its handlers would find what they look for missing, and refuse for good.
    fn can_look(&self, mesh: &Mesh) -> bool {
        // Noted before it is looked: what is read in between is heard of as a change.
        self.unread.store(true, Ordering::Release);
        let read = mesh.config().has_read(&self.watches);
        self.unread.store(!read, Ordering::Release);
        read
    }

    /// The flow instances that a change touches, with the rows they should have; `None` instead of a row
    /// means none. Without a change, or when whole types changed, that is every instance.
    fn flow_rows(
        &self,
        mesh: &Mesh,
        change: Option<&Changed>,
        instances: &BTreeMap<At, Instance>,
    ) -> BTreeMap<At, Option<Arc<str>>> {
        let kind = row_kind(&self.id);
        let concerns = |changed: &str| changed == kind || changed == FLOW;
        let whole = |workspace: &str| {
            change.is_none_or(|change| {
                let mut whole = change.whole.iter();
                whole.any(|(changed, ws)| concerns(changed) && ws == workspace)
            })
        };
        let mut touched = BTreeMap::new();
        for at in instances.keys() {
            if matches!(at, At::Flow(workspace, _) if whole(workspace)) {
                touched.insert(at.clone(), None);
            }
        }
        for workspace in mesh.config().workspaces_with(&kind) {
            if whole(&workspace) {
                for (flow, row) in mesh.config().values(&workspace, &kind).iter() {
                    touched.insert(At::Flow(workspace.clone(), flow.clone()), Some(row.clone()));
                }
            }
        }
        for (changed, workspace, flow) in change.iter().flat_map(|change| &change.rows) {
            if concerns(changed) {
                let row = mesh.config().get(workspace, &kind, flow);
                touched.insert(At::Flow(workspace.clone(), flow.clone()), row);
            }
        }
        touched
    }

    /// Makes the attached instances what config says. The work is that of the rows that changed, not of all
    /// that are attached.
    pub(crate) async fn sync(&self, mesh: &Mesh, change: Option<&Changed>) -> Result<(), BusError> {
        let mut instances = self.instances.lock().await;
        // Looked at under the lock: who detaches everything takes it afterwards.
        if !self.serving.load(Ordering::Acquire) || mesh.stopping().is_cancelled() {
            return Ok(());
        }
        // A change that comes while something is unread says too little of what was passed over before.
        let change = change.filter(|_| !self.unread.load(Ordering::Acquire));
        let reads = self.can_look(mesh);
        let mut wanted: BTreeMap<At, Option<Arc<str>>> = BTreeMap::new();
        if change.is_none_or(|change| change.of(WORKSPACES.1)) {
            if self.has(TopicScope::System) {
                wanted.insert(At::System, Some("".into()));
            }
            if reads && self.has(TopicScope::Workspace) {
                let attached = instances.keys().filter(|at| matches!(at, At::Workspace(_)));
                wanted.extend(attached.map(|at| (at.clone(), None)));
                let registered = mesh.config().workspaces().into_iter();
                wanted.extend(registered.map(|ws| (At::Workspace(ws), Some("".into()))));
            }
        }
        if reads && (self.has(TopicScope::Flow) || self.has(TopicScope::Own)) {
            wanted.extend(self.flow_rows(mesh, change, &instances));
        }
        let mut gone = Vec::new();
        let mut attach = Vec::new();
        for (at, row) in &wanted {
            match (instances.get(at), row) {
                (None, Some(row)) => attach.push((at.clone(), row.clone())),
                (Some(_), None) => gone.push(at.clone()),
                (Some(instance), Some(row)) if instance.row != *row => {
                    if same_wiring(&instance.row, row) {
                        self.rescope(instance, at, row);
                        if let Some(known) = instances.get_mut(at) {
                            known.row = row.clone();
                        }
                    } else {
                        gone.push(at.clone());
                        attach.push((at.clone(), row.clone()));
                    }
                }
                _ => {}
            }
        }
        let mut leaving = Vec::new();
        let mut idle = Vec::new();
        for at in gone {
            idle.extend(self.wiring.topics_of_workspace(&at));
            leaving.extend(instances.remove(&at));
        }
        if !leaving.is_empty() {
            detach(mesh, leaving, Instant::now() + DETACH).await;
            remove_idle(mesh, idle);
        }
        let outcome = tokio::select! {
            outcome = self.attach(mesh, &mut instances, attach) => outcome,
            () = mesh.stopping().cancelled() => return Ok(()),
        };
        let touched = wanted.keys().filter_map(|at| instances.get_key_value(at));
        self.mark_stopping(mesh, touched).await;
        outcome
    }

    async fn attach(
        &self,
        mesh: &Mesh,
        instances: &mut BTreeMap<At, Instance>,
        attach: Vec<(At, Arc<str>)>,
    ) -> Result<(), BusError> {
        let mut outcome = Ok(());
        let mut told = Vec::new();
        for batch in attach.chunks(PARALLEL) {
            let started = batch
                .iter()
                .map(|(at, row)| self.wiring.attach_one(mesh, at, row));
            for ((at, row), result) in batch.iter().zip(futures::future::join_all(started).await) {
                match result {
                    Ok(Some((slot, consumers))) => {
                        told.push(slot.clone());
                        instances.insert(
                            at.clone(),
                            Instance {
                                slot,
                                consumers,
                                row: row.clone(),
                            },
                        );
                    }
                    Ok(None) => {}
                    Err(fault) => {
                        tracing::warn!(processor = %self.id, %fault, "could not attach; trying again");
                        outcome = Err(fault);
                    }
                }
            }
        }
        tell_of(mesh, told).await;
        outcome
    }

    fn rescope(&self, instance: &Instance, at: &At, row: &str) {
        if let Some(scope) = self.wiring.scope(at, row) {
            *instance.slot.scope.write() = Arc::new(scope);
        }
    }

    /// Tells instances of stopping flows that they are, and everybody how busy they still are.
    async fn mark_stopping(&self, mesh: &Mesh, instances: impl Iterator<Item = (&At, &Instance)>) {
        let mut told = Vec::new();
        for (at, instance) in instances {
            let At::Flow(workspace, flow) = at else {
                continue;
            };
            let stopping = mesh
                .config()
                .get(workspace, FLOW, flow)
                .is_some_and(|record| is_stopping(&record));
            if instance.slot.set_stopping(stopping) {
                told.push(instance.slot.clone());
            }
        }
        tell_of(mesh, told).await;
    }
}

/// Tells how instances of flows are.
async fn tell_of(mesh: &Mesh, slots: Vec<Arc<InstanceState>>) {
    let now = || listed(slots.iter().map(|slot| slot.hosted()));
    announce::tell(mesh, "attached", now).await;
}

/// Those of them that are a flow's.
fn listed(all: impl Iterator<Item = HostedProcessor>) -> Option<Vec<HostedProcessor>> {
    let of_flows: Vec<_> = all.filter(|hosted| !hosted.flows.is_empty()).collect();
    (!of_flows.is_empty()).then_some(of_flows)
}

/// Stops consuming, waits until `end` for what is in progress, then says so.
async fn detach(mesh: &Mesh, instances: Vec<Instance>, end: Instant) {
    for batch in instances.chunks(PARALLEL) {
        let stops = batch
            .iter()
            .flat_map(|instance| instance.consumers.iter().map(|c| c.stop()));
        let stopped = futures::future::join_all(stops);
        if tokio::time::timeout(STOP, stopped).await.is_err() {
            tracing::warn!("a consumer cannot be cancelled on the bus");
        }
        let waits = batch.iter().map(|instance| instance.slot.wait_idle(end));
        futures::future::join_all(waits).await;
    }
    let now = || listed(instances.iter().map(|instance| instance.slot.leave()));
    announce::tell(mesh, "detached", now).await;
}

/// Removes topics of a workspace that is gone once nobody reads them: nothing else ever would. Among foreign processors
/// they may be others'.
fn remove_idle(mesh: &Mesh, topics: Vec<Topic>) {
    if topics.is_empty() || !mesh.rules().tombstones {
        return;
    }
    let bus = mesh.bus().clone();
    mesh.spawn(TaskKind::Background, async move {
        for topic in topics {
            for _ in 0..REMOVALS {
                // A broker lets go of the queue a moment after its last consumer left; of another process's consumer
                // that one takes care.
                match bus.delete_topic(&topic).await {
                    Ok(false) => tokio::time::sleep(REMOVAL_PAUSE).await,
                    Ok(true) | Err(_) => break,
                }
            }
        }
    });
}

fn is_stopping(record: &str) -> bool {
    record.contains("stopping")
        && FlowRecord::read(record).is_some_and(|record| record.status == Status::Stopping)
}
