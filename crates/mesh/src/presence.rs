//! Every process says what it does: which processors it hosts and, per flow and epoch, whether they are
//! attached and how busy they are. Told on `notify:tg:control` at each change, in short every 5 s.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tg_schemas::codec::{self, ContentType};
use tg_schemas::msg::{HostedFlow, HostedProcessor, Presence};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::mesh::Mesh;
use tg_bus::{Envelope, Link, Promise, Target};
use tg_rpc::control;

/// A process not heard of for this long is gone.
const EXPIRES: Duration = Duration::from_secs(12);
/// How often a process says that it lives.
const EVERY: Duration = Duration::from_secs(5);
/// Processes remembered at most.
const MAX_PROCESSES: usize = 1024;

/// Instances that left stopping flows, remembered at most.
const MAX_LEFT: usize = 4096;

type Left = VecDeque<HostedFlow>;
type Flows = HashMap<(String, String), HostedFlow>;

#[derive(Default)]
struct Process {
    heard: Option<Instant>,
    processors: HashMap<String, (String, Flows)>,
    /// Rooms of put-aside records that it says are full.
    full_rooms: BTreeSet<String>,
}

/// What all processes said last. Cheap to clone.
#[derive(Clone)]
pub struct PresenceView(Arc<Inner>);

struct Inner {
    own: Arc<str>,
    processes: Mutex<HashMap<String, Process>>,
    left: Mutex<Left>,
    changed: watch::Sender<u64>,
    /// One tells at a time, so that what is told last is what is so.
    telling: tokio::sync::Mutex<()>,
}

impl PresenceView {
    pub(crate) fn new(own: Arc<str>) -> Self {
        Self(Arc::new(Inner {
            own,
            processes: Mutex::default(),
            left: Mutex::default(),
            changed: watch::channel(0).0,
            telling: tokio::sync::Mutex::default(),
        }))
    }

    /// Whether some live process has attached the processor to the flow under this epoch.
    pub fn attached(&self, processor: &str, workspace: &str, flow: &str, epoch: u64) -> bool {
        let key = (workspace.to_owned(), flow.to_owned());
        self.any(|process| {
            process
                .processors
                .get(processor)
                .is_some_and(|(state, flows)| {
                    state == "serving"
                        && flows
                            .get(&key)
                            .is_some_and(|f| epoch == 0 || f.epoch == epoch as i64)
                })
        })
    }

    /// Whether some live process serves the processor.
    pub fn hosted(&self, processor: &str) -> bool {
        self.any(|process| {
            process
                .processors
                .get(processor)
                .is_some_and(|(state, _)| state == "serving")
        })
    }

    /// Whether no live process has work in progress for the flow.
    pub fn idle(&self, workspace: &str, flow: &str) -> bool {
        let key = (workspace.to_owned(), flow.to_owned());
        !self.any(|process| {
            process
                .processors
                .values()
                .any(|(_, flows)| flows.get(&key).is_some_and(|f| f.busy > 0))
        })
    }

    /// Whether every live instance of the flow knows that the flow stops.
    pub fn stopping(&self, workspace: &str, flow: &str) -> bool {
        let key = (workspace.to_owned(), flow.to_owned());
        !self.any(|process| {
            process
                .processors
                .values()
                .any(|(_, flows)| flows.get(&key).is_some_and(|f| !f.stopping))
        })
    }

    /// What instances of a flow's start handled since they knew that it stops, by subscription: those that
    /// are attached as they said last, and those that have left. Instances left long ago are forgotten.
    pub fn done(&self, workspace: &str, flow: &str, epoch: u64) -> BTreeMap<String, i64> {
        let mut done = BTreeMap::new();
        let mut add = |said: &HostedFlow| {
            if said.stopping && said.epoch == epoch as i64 {
                for (subscription, count) in &said.done {
                    *done.entry(subscription.clone()).or_default() += count;
                }
            }
        };
        let key = (workspace.to_owned(), flow.to_owned());
        let processes = self.0.processes.lock();
        for process in processes.values() {
            let here = process.processors.values();
            here.filter_map(|(_, flows)| flows.get(&key))
                .for_each(&mut add);
        }
        let left = self.0.left.lock();
        let gone = left
            .iter()
            .filter(|said| said.workspace == workspace && said.flow == flow);
        gone.for_each(add);
        done
    }

    /// Whether no live process has an instance of the flow attached.
    pub fn detached(&self, workspace: &str, flow: &str) -> bool {
        let key = (workspace.to_owned(), flow.to_owned());
        !self.any(|process| {
            process
                .processors
                .values()
                .any(|(_, flows)| flows.contains_key(&key))
        })
    }

    /// Whether the put-aside records of a workspace, or of one of its flows, are as many as there may be.
    pub fn room_full(&self, workspace: &str, flow: &str) -> bool {
        self.any(|process| {
            let rooms = &process.full_rooms;
            !rooms.is_empty()
                && (rooms.contains(workspace) || rooms.contains(&format!("{workspace}:{flow}")))
        })
    }

    /// One entry per live process.
    pub fn snapshot(&self) -> Vec<Presence> {
        let processes = self.0.processes.lock();
        let mut all: Vec<_> = processes
            .iter()
            .filter(|(_, process)| self.live(process))
            .map(|(name, process)| Presence {
                process: name.clone(),
                kind: "full".to_owned(),
                processors: listing(&process.processors),
                full_rooms: process.full_rooms.iter().cloned().collect(),
            })
            .collect();
        all.sort_by(|a, b| a.process.cmp(&b.process));
        all
    }

    /// Counts changes.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }

    /// Waits until a condition on the view holds, at most `bound`. `false` when it did not.
    pub async fn until(&self, bound: Duration, holds: impl Fn(&Self) -> bool) -> bool {
        let mut changed = self.changed();
        let end = Instant::now() + bound;
        loop {
            changed.borrow_and_update();
            if holds(self) {
                return true;
            }
            if !matches!(
                tokio::time::timeout_at(end, changed.changed()).await,
                Ok(Ok(()))
            ) {
                return holds(self);
            }
        }
    }

    fn live(&self, process: &Process) -> bool {
        process.heard.is_none_or(|heard| heard.elapsed() < EXPIRES)
    }

    fn any(&self, holds: impl Fn(&Process) -> bool) -> bool {
        self.0
            .processes
            .lock()
            .values()
            .any(|process| self.live(process) && holds(process))
    }

    /// Takes what a process says of itself.
    pub(crate) fn hear(&self, presence: Presence) {
        if presence.kind == "detached" {
            let mut left = self.0.left.lock();
            let flows = presence.processors.iter().flat_map(|said| &said.flows);
            left.extend(flows.filter(|flow| flow.stopping).cloned());
            let over = left.len().saturating_sub(MAX_LEFT);
            left.drain(..over);
        }
        let mut processes = self.0.processes.lock();
        if presence.kind == "bye" {
            processes.remove(&presence.process);
        } else {
            if processes.len() >= MAX_PROCESSES && !processes.contains_key(&presence.process) {
                processes.retain(|_, process| self.live(process));
                if processes.len() >= MAX_PROCESSES {
                    return;
                }
            }
            let own = *presence.process == *self.0.own;
            let process = processes.entry(presence.process).or_default();
            process.heard = (!own).then(Instant::now);
            if matches!(presence.kind.as_str(), "full" | "rooms") {
                process.full_rooms = presence.full_rooms.into_iter().collect();
            }
            merge(process, &presence.kind, presence.processors);
        }
        drop(processes);
        self.0.changed.send_modify(|n| *n += 1);
    }

    fn knows(&self, process: &str) -> bool {
        self.0
            .processes
            .lock()
            .get(process)
            .is_some_and(|known| !known.processors.is_empty())
    }

    fn own_full(&self) -> (Vec<HostedProcessor>, Vec<String>) {
        let processes = self.0.processes.lock();
        processes
            .get(&*self.0.own)
            .map_or_else(Default::default, |process| {
                let rooms = process.full_rooms.iter().cloned().collect();
                (listing(&process.processors), rooms)
            })
    }
}

fn listing(processors: &HashMap<String, (String, Flows)>) -> Vec<HostedProcessor> {
    let mut all: Vec<_> = processors
        .iter()
        .map(|(id, (state, flows))| HostedProcessor {
            id: id.clone(),
            state: state.clone(),
            flows: flows.values().cloned().collect(),
        })
        .collect();
    all.sort_by(|a, b| a.id.cmp(&b.id));
    all
}

fn merge(process: &mut Process, kind: &str, processors: Vec<HostedProcessor>) {
    if kind == "full" {
        process.processors.clear();
    }
    for said in processors {
        let (state, flows) = process.processors.entry(said.id).or_default();
        *state = said.state;
        for flow in said.flows {
            let key = (flow.workspace.clone(), flow.flow.clone());
            if kind == "detached" {
                flows.remove(&key);
            } else {
                flows.insert(key, flow);
            }
        }
    }
}

/// Tells the others, and our own view, of a change: `now` is asked when it is this teller's turn, and tells
/// nothing with `None`.
pub(crate) async fn tell(
    mesh: &Mesh,
    kind: &str,
    now: impl FnOnce() -> Option<Vec<HostedProcessor>>,
) {
    let _turn = mesh.presence().0.telling.lock().await;
    let Some(processors) = now() else {
        return;
    };
    let presence = Presence {
        process: mesh.inbox().to_owned(),
        kind: kind.to_owned(),
        processors,
        full_rooms: Vec::new(),
    };
    mesh.presence().hear(presence.clone());
    publish(mesh, presence).await;
}

/// Tells the others, and our own view, which rooms of put-aside records are full: all of them, each as `workspace`
/// or `workspace:flow`. For the flow service, which keeps them.
pub async fn tell_full_rooms(mesh: &Mesh, full_rooms: Vec<String>) {
    let _turn = mesh.presence().0.telling.lock().await;
    let presence = Presence {
        process: mesh.inbox().to_owned(),
        kind: "rooms".to_owned(),
        full_rooms,
        ..Presence::default()
    };
    mesh.presence().hear(presence.clone());
    publish(mesh, presence).await;
}

async fn publish(mesh: &Mesh, presence: Presence) {
    let Ok(body) = codec::encode(&presence, ContentType::Json) else {
        return;
    };
    let envelope = Envelope {
        body,
        ..Envelope::default()
    };
    let _ = mesh
        .bus()
        .publish(&Target::Topic(control::topic()), envelope, Promise::Sent)
        .await;
}

/// A presence message from the control topic.
pub(crate) fn deliver(mesh: &Mesh, envelope: &Envelope) {
    let Ok(presence) = codec::decode::<Presence>(&envelope.body, envelope.content_type) else {
        return;
    };
    if *presence.process == *mesh.inbox() {
        return;
    }
    if presence.kind == "who" {
        let mesh = mesh.clone();
        let inner = mesh.clone();
        mesh.spawn(
            tg_bus::TaskKind::Handler,
            async move { say_all(&inner).await },
        );
        return;
    }
    if presence.kind == "alive" && !mesh.presence().knows(&presence.process) {
        let who = Presence {
            process: mesh.inbox().to_owned(),
            kind: "who".into(),
            ..Presence::default()
        };
        let (mesh, inner) = (mesh.clone(), mesh.clone());
        mesh.spawn(tg_bus::TaskKind::Handler, async move {
            publish(&inner, who).await
        });
    }
    mesh.presence().hear(presence);
}

async fn say_all(mesh: &Mesh) {
    let _turn = mesh.presence().0.telling.lock().await;
    let (processors, full_rooms) = mesh.presence().own_full();
    let process = mesh.inbox().to_owned();
    publish(
        mesh,
        Presence {
            process,
            kind: "full".to_owned(),
            processors,
            full_rooms,
        },
    )
    .await;
}

/// Asks everybody at each connect, and says "alive" every 5 s, until the process stops.
pub(crate) async fn run(mesh: Mesh) {
    let mut link = mesh.bus().link();
    let process = mesh.inbox().to_owned();
    loop {
        let up = matches!(*link.borrow_and_update(), Link::Up { .. });
        if up {
            let who = Presence {
                process: process.clone(),
                kind: "who".to_owned(),
                ..Presence::default()
            };
            publish(&mesh, who).await;
            say_all(&mesh).await;
        }
        loop {
            match tokio::time::timeout(EVERY, link.changed()).await {
                Ok(Ok(())) => break,
                Ok(Err(_)) => return,
                Err(_) => {
                    let kind = "alive".to_owned();
                    publish(
                        &mesh,
                        Presence {
                            process: process.clone(),
                            kind,
                            ..Presence::default()
                        },
                    )
                    .await;
                }
            }
        }
    }
}
