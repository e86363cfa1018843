//! Attaches hosted processors wherever configuration says, and detaches them again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use serde::Deserialize;
use tg_schemas::msg::HostedProcessor;
use tg_schemas::{Class, Error, FlowId, Subscription, Topic, WorkspaceId};
use tokio::sync::{Mutex, Notify, mpsc};

use crate::bus::{BusError, Claim, Consume, Consumer};
use crate::config_view::WORKSPACES;
use crate::config_watch::Changed;
use crate::mesh::Mesh;
use crate::presence;
use crate::processor::{Handler, Hosted, Place, Processor};
use crate::scope::Scope;
use crate::slot::{ReadSink, ServeSink, Slot, response_topic};
use crate::task::TaskKind;

/// How often an attach that failed is tried again, and a standby asks for its claim.
const AGAIN: Duration = Duration::from_millis(500);
/// How long a detach waits for what is in progress.
const DETACH: Duration = Duration::from_secs(10);
/// Instances attached at once.
const PARALLEL: usize = 32;

/// Everything this process hosts.
#[derive(Default)]
pub(crate) struct Runtime {
    all: RwLock<Vec<Arc<Served>>>,
    retry: Notify,
    closed: AtomicBool,
    /// Stores this process owns, by name.
    claims: Mutex<HashMap<String, Box<dyn Claim>>>,
}

/// Where an instance runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    System,
    Workspace(String),
    Flow(String, String),
}

struct Served {
    id: String,
    handlers: Vec<Hosted>,
    concurrency: usize,
    owner: Option<String>,
    serving: AtomicBool,
    instances: Mutex<BTreeMap<At, Instance>>,
}

struct Instance {
    slot: Arc<Slot>,
    consumers: Vec<Box<dyn Consumer>>,
    row: Arc<str>,
}

/// Value of a `processor:<id>` row.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Row {
    topics: BTreeMap<String, String>,
    parameters: BTreeMap<String, String>,
    epoch: u64,
}

impl Processor {
    pub(crate) fn has_flow_handlers(&self) -> bool {
        self.handlers
            .iter()
            .any(|hosted| matches!(hosted.place, Place::Flow | Place::FlowOwn))
    }
}

impl Runtime {
    pub(crate) async fn host(&self, mesh: &Mesh, processor: Processor) -> Result<(), Error> {
        let served = Arc::new(Served {
            id: processor.id,
            handlers: processor.handlers,
            concurrency: processor.concurrency,
            owner: processor.owner,
            serving: AtomicBool::new(false),
            instances: Mutex::default(),
        });
        self.all.write().push(served.clone());
        if served.owner.is_some() {
            if !served.try_claim(mesh).await? {
                tracing::warn!(processor = %served.id, "another process owns this store: standing by");
                served.say_standby(mesh).await;
            }
            let (mesh, served) = (mesh.clone(), served.clone());
            mesh.clone().spawn(TaskKind::Background, async move {
                served.keep_claim(&mesh).await
            });
        } else {
            served.serving.store(true, Ordering::Release);
        }
        if served.serving.load(Ordering::Acquire) {
            served.announce(mesh).await;
            if served.sync(mesh, None).await.is_err() {
                self.retry.notify_one();
            }
        }
        Ok(())
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
                () = tokio::time::sleep(AGAIN), if failed => None,
            };
            if self.closed.load(Ordering::Acquire) {
                return;
            }
            failed = false;
            let all = self.all.read().clone();
            for served in all {
                if served.serving.load(Ordering::Acquire)
                    && served.concerns(change.as_ref())
                    && served.sync(mesh, change.as_ref()).await.is_err()
                {
                    failed = true;
                }
            }
        }
    }

    /// Owns a store, or learns that another process does.
    async fn claim(&self, mesh: &Mesh, store: &str) -> Result<bool, Error> {
        let mut claims = self.claims.lock().await;
        if claims.get(store).is_some_and(|claim| claim.holds()) {
            return Ok(true);
        }
        claims.remove(store);
        let Some(claim) = mesh.bus().claim(store).await? else {
            return Ok(false);
        };
        claims.insert(store.to_owned(), claim);
        Ok(true)
    }

    async fn holds(&self, store: &str) -> bool {
        self.claims
            .lock()
            .await
            .get(store)
            .is_some_and(|claim| claim.holds())
    }

    pub(crate) async fn detach_all(&self, mesh: &Mesh) {
        self.closed.store(true, Ordering::Release);
        let all = self.all.read().clone();
        for served in all {
            served.detach_all(mesh).await;
        }
    }
}

impl Served {
    fn concerns(&self, change: Option<&Changed>) -> bool {
        let Some(change) = change else { return true };
        let row = format!("processor:{}", self.id);
        change
            .rows
            .iter()
            .any(|(kind, _)| *kind == row || *kind == WORKSPACES.1 || kind == "flow")
    }

    fn has(&self, wanted: Place) -> bool {
        self.handlers.iter().any(|hosted| hosted.place == wanted)
    }

    async fn announce(&self, mesh: &Mesh) {
        let hosted = HostedProcessor {
            id: self.id.clone(),
            state: "serving".to_owned(),
            flows: Vec::new(),
        };
        presence::tell(mesh, "attached", vec![hosted]).await;
    }

    async fn say_standby(&self, mesh: &Mesh) {
        let hosted = HostedProcessor {
            id: self.id.clone(),
            state: "standby".to_owned(),
            flows: Vec::new(),
        };
        presence::tell(mesh, "attached", vec![hosted]).await;
    }

    async fn try_claim(&self, mesh: &Mesh) -> Result<bool, Error> {
        let owned = match &self.owner {
            Some(store) => mesh.runtime().claim(mesh, store).await?,
            None => true,
        };
        if owned {
            self.serving.store(true, Ordering::Release);
        }
        Ok(owned)
    }

    async fn holds(&self, mesh: &Mesh) -> bool {
        match &self.owner {
            Some(store) => mesh.runtime().holds(store).await,
            None => true,
        }
    }

    /// Keeps the claim, or waits for it; a lost one detaches everything.
    async fn keep_claim(self: Arc<Self>, mesh: &Mesh) {
        loop {
            tokio::time::sleep(AGAIN).await;
            match (self.holds(mesh).await, self.serving.load(Ordering::Acquire)) {
                (true, true) => {}
                (false, true) => {
                    // A short outage re-claims by itself; give it the chance before standing by.
                    if let Ok(false) | Err(_) = self.try_claim(mesh).await
                        && matches!(*mesh.bus().link().borrow(), crate::bus::Link::Up { .. })
                    {
                        tracing::warn!(processor = %self.id, "lost the claim: standing by");
                        self.serving.store(false, Ordering::Release);
                        self.detach_all(mesh).await;
                        self.say_standby(mesh).await;
                    }
                }
                (_, false) => {
                    if matches!(self.try_claim(mesh).await, Ok(true)) {
                        tracing::info!(processor = %self.id, "took over");
                        self.announce(mesh).await;
                        if self.sync(mesh, None).await.is_err() {
                            mesh.runtime().retry.notify_one();
                        }
                    }
                }
            }
        }
    }

    /// Makes the attached instances what config says.
    async fn sync(&self, mesh: &Mesh, change: Option<&Changed>) -> Result<(), BusError> {
        let mut instances = self.instances.lock().await;
        let mut gone = Vec::new();
        let mut wanted: BTreeMap<At, Arc<str>> = BTreeMap::new();
        let touched = |workspace: &str| {
            change.is_none_or(|change| change.rows.iter().any(|(_, ws)| ws == workspace))
        };
        if self.has(Place::System) {
            wanted.insert(At::System, "".into());
        }
        if self.has(Place::Workspace) {
            wanted.extend(
                mesh.config()
                    .workspaces()
                    .into_iter()
                    .map(|ws| (At::Workspace(ws), "".into())),
            );
        }
        if self.has(Place::Flow) || self.has(Place::FlowOwn) {
            let kind = format!("processor:{}", self.id);
            for workspace in mesh.config().workspaces_with(&kind) {
                if touched(&workspace) {
                    for (flow, row) in mesh.config().values(&workspace, &kind).iter() {
                        wanted.insert(At::Flow(workspace.clone(), flow.clone()), row.clone());
                    }
                }
            }
        }
        let mut attach = Vec::new();
        for (at, row) in &wanted {
            match instances.get(at) {
                None => attach.push((at.clone(), row.clone())),
                Some(instance) if instance.row != *row => {
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
                Some(_) => {}
            }
        }
        gone.extend(
            instances
                .keys()
                .filter(|at| !wanted.contains_key(at))
                .filter(|at| match at {
                    At::Flow(workspace, _) => touched(workspace),
                    _ => true,
                })
                .cloned(),
        );
        let mut leaving = Vec::new();
        for at in gone.into_iter().collect::<BTreeSet<_>>() {
            leaving.extend(instances.remove(&at));
        }
        if !leaving.is_empty() {
            detach(mesh, leaving).await;
        }
        let outcome = self.attach(mesh, &mut instances, attach).await;
        self.mark_stopping(mesh, &instances).await;
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
            let started = batch.iter().map(|(at, row)| self.attach_one(mesh, at, row));
            for ((at, row), result) in batch.iter().zip(futures::future::join_all(started).await) {
                match result {
                    Ok(Some((slot, consumers))) => {
                        told.push(slot.hosted());
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
        told.retain(|hosted| !hosted.flows.is_empty());
        if !told.is_empty() {
            presence::tell(mesh, "attached", told).await;
        }
        outcome
    }

    /// `None` when the row cannot be read; that is told, not tried again.
    #[allow(clippy::type_complexity, reason = "a pair used in one place")]
    async fn attach_one(
        &self,
        mesh: &Mesh,
        at: &At,
        row: &str,
    ) -> Result<Option<(Arc<Slot>, Vec<Box<dyn Consumer>>)>, BusError> {
        let Some(scope) = self.scope(at, row) else {
            tracing::warn!(processor = %self.id, ?at, "a processor row cannot be read");
            return Ok(None);
        };
        let slot = Slot::new(mesh.clone(), scope.clone());
        let starts = self
            .handlers
            .iter()
            .filter(|hosted| match (at, hosted.place) {
                (At::System, place) => place == Place::System,
                (At::Workspace(_), place) => place == Place::Workspace,
                (At::Flow(..), place) => matches!(place, Place::Flow | Place::FlowOwn),
            })
            .filter_map(|hosted| Some((hosted, self.subscription(&scope, hosted)?)))
            .map(|(hosted, subscription)| self.consume(mesh, &slot, &scope, hosted, subscription));
        let mut consumers = Vec::new();
        let mut fault = None;
        for result in futures::future::join_all(starts).await {
            match result {
                Ok(consumer) => consumers.push(consumer),
                Err(error) => fault = Some(error),
            }
        }
        if let Some(fault) = fault {
            for consumer in consumers {
                consumer.stop().await;
            }
            return Err(fault);
        }
        Ok(Some((slot, consumers)))
    }

    fn scope(&self, at: &At, row: &str) -> Option<Scope> {
        let mut scope = Scope {
            processor: self.id.clone(),
            ..Scope::default()
        };
        match at {
            At::System => {}
            At::Workspace(workspace) => scope.workspace = Some(WorkspaceId::new(workspace).ok()?),
            At::Flow(workspace, flow) => {
                scope.workspace = Some(WorkspaceId::new(workspace).ok()?);
                scope.flow = Some(FlowId::new(flow).ok()?);
                let row: Row = serde_json::from_str(row).ok()?;
                scope.epoch = row.epoch;
                scope.parameters = row.parameters;
                for (spec, topic) in row.topics {
                    scope.topics.insert(spec, Topic::parse(&topic).ok()?);
                }
            }
        }
        Some(scope)
    }

    fn subscription(&self, scope: &Scope, hosted: &Hosted) -> Option<Subscription> {
        let class = match hosted.handler {
            Handler::Serve(_) => Class::Request,
            Handler::Read(_) => Class::Flow,
        };
        let spec = hosted.spec.as_str();
        match hosted.place {
            Place::System => Some(Subscription::service(Topic::system(class, spec), &self.id)),
            Place::Workspace => {
                let topic = Topic::workspace(class, spec, scope.workspace.as_ref()?);
                Some(Subscription::service(topic, &self.id))
            }
            Place::Flow | Place::FlowOwn => {
                let (workspace, flow) = (scope.workspace.as_ref()?, scope.flow.as_ref()?);
                let topic = if hosted.place == Place::Flow {
                    scope
                        .topics
                        .get(spec)
                        .filter(|topic| topic.class() == class)?
                        .clone()
                } else {
                    Topic::flow(class, spec, workspace, flow)
                };
                Some(Subscription::flow(
                    topic,
                    &self.id,
                    workspace.as_str(),
                    flow.as_str(),
                    spec,
                ))
            }
        }
    }

    async fn consume(
        &self,
        mesh: &Mesh,
        slot: &Arc<Slot>,
        scope: &Scope,
        hosted: &Hosted,
        subscription: Subscription,
    ) -> Result<Box<dyn Consumer>, BusError> {
        let how = Consume {
            prefetch: self.concurrency.min(usize::from(u16::MAX)) as u16,
        };
        match &hosted.handler {
            Handler::Serve(handler) => {
                let sink = Arc::new(ServeSink {
                    slot: slot.clone(),
                    handler: handler.clone(),
                    limit: self.concurrency,
                    running: Arc::new(AtomicUsize::new(0)),
                    responses: response_topic(scope, &hosted.spec, &subscription.topic),
                });
                mesh.bus().consume(&subscription, how, sink).await
            }
            Handler::Read(handler) => {
                let sink = Arc::new(ReadSink {
                    slot: slot.clone(),
                    handler: handler.clone(),
                    subscription: subscription.clone(),
                });
                mesh.bus().consume(&subscription, how, sink).await
            }
        }
    }

    fn rescope(&self, instance: &Instance, at: &At, row: &str) {
        if let Some(scope) = self.scope(at, row) {
            *instance.slot.scope.write() = Arc::new(scope);
        }
    }

    /// Tells instances of stopping flows that they are, and everybody how busy they still are.
    async fn mark_stopping(&self, mesh: &Mesh, instances: &BTreeMap<At, Instance>) {
        let mut told = Vec::new();
        for (at, instance) in instances {
            let At::Flow(workspace, flow) = at else {
                continue;
            };
            let stopping = mesh
                .config()
                .get(workspace, "flow", flow)
                .is_some_and(|record| is_stopping(&record));
            if instance.slot.set_stopping(stopping) {
                told.push(instance.slot.hosted());
            }
        }
        if !told.is_empty() {
            presence::tell(mesh, "attached", told).await;
        }
    }

    async fn detach_all(&self, mesh: &Mesh) {
        let all = std::mem::take(&mut *self.instances.lock().await);
        detach(mesh, all.into_values().collect()).await;
    }
}

/// Stops consuming, waits (bounded) for what is in progress, then says so.
async fn detach(mesh: &Mesh, instances: Vec<Instance>) {
    for batch in instances.chunks(PARALLEL) {
        let stops = batch
            .iter()
            .flat_map(|instance| instance.consumers.iter().map(|c| c.stop()));
        futures::future::join_all(stops).await;
        let waits = batch.iter().map(|instance| instance.slot.wait_idle(DETACH));
        futures::future::join_all(waits).await;
    }
    let mut told: Vec<_> = instances
        .iter()
        .map(|instance| instance.slot.hosted())
        .collect();
    told.retain(|hosted| !hosted.flows.is_empty());
    if !told.is_empty() {
        presence::tell(mesh, "detached", told).await;
    }
}

fn is_stopping(record: &str) -> bool {
    record.contains("stopping")
        && serde_json::from_str::<serde_json::Value>(record)
            .is_ok_and(|record| record["status"] == "stopping")
}

/// Whether two rows differ in parameters only, so that the instance can stay attached.
fn same_wiring(old: &str, new: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<Row>(text).ok();
    match (read(old), read(new)) {
        (Some(old), Some(new)) => old.epoch == new.epoch && old.topics == new.topics,
        _ => false,
    }
}
