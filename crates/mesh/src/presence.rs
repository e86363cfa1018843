//! What all processes say of themselves: which processors they host and, per flow and epoch, whether these are
//! attached and how busy they are. How it is said is the business of `announce.rs`.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tg_schemas::msg::{HostedFlow, HostedProcessor, Presence};
use tokio::sync::watch;
use tokio::time::Instant;

/// A process not heard of for this long is gone.
const EXPIRES: Duration = Duration::from_secs(12);
/// Processes remembered at most.
const MAX_PROCESSES: usize = 1024;

/// Instances that left stopping flows, remembered at most; and those that left others, as a process does that is
/// restarted.
const MAX_LEFT: usize = 4096;

type Left = VecDeque<HostedFlow>;
type Flows = HashMap<(String, String), HostedFlow>;

#[derive(Default)]
struct Process {
    heard: Option<Instant>,
    processors: HashMap<String, (String, Flows)>,
    /// Rooms of dead letters that it says are full.
    full_rooms: BTreeSet<String>,
    /// Its stores that purge nothing, and why.
    purging_refused: BTreeMap<String, String>,
    /// The disk below its stores is full.
    disk_full: bool,
}

/// What all processes said last. Cheap to clone.
#[derive(Clone)]
pub struct PresenceView(Arc<Inner>);

struct Inner {
    own: Arc<str>,
    processes: Mutex<HashMap<String, Process>>,
    left: Mutex<Left>,
    /// What instances had handled that left flows which were not stopping.
    earlier: Mutex<Left>,
    changed: watch::Sender<u64>,
    /// How often something was heard, and one more.
    heard: AtomicU64,
    /// One tells at a time, so that what is told last is what is so.
    telling: tokio::sync::Mutex<()>,
}

impl PresenceView {
    pub(crate) fn new(own: Arc<str>) -> Self {
        Self(Arc::new(Inner {
            own,
            processes: Mutex::default(),
            left: Mutex::default(),
            earlier: Mutex::default(),
            changed: watch::channel(0).0,
            heard: AtomicU64::new(1),
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

    /// The live processes that serve the processor, by name. Costs no look at flows: it is asked at each change.
    pub fn serving(&self, processor: &str) -> Vec<String> {
        let processes = self.0.processes.lock();
        let mut names: Vec<String> = processes
            .iter()
            .filter(|(_, process)| self.serves(process, processor))
            .map(|(name, _)| name.clone())
            .collect();
        names.sort();
        names
    }

    /// Whether no other live process serves the processor, for who asks it often.
    pub(crate) fn sole(&self, processor: &str) -> Sole {
        Sole {
            view: self.clone(),
            processor: processor.to_owned(),
            found: AtomicU64::new(0),
        }
    }

    /// Whether no other live process serves the processor.
    fn is_alone(&self, processor: &str) -> bool {
        let processes = self.0.processes.lock();
        let mut others = processes
            .iter()
            .filter(|(name, _)| name.as_str() != &*self.0.own);
        !others.any(|(_, process)| self.serves(process, processor))
    }

    /// Messages of the flow in progress, by processor.
    pub fn busy(&self, workspace: &str, flow: &str) -> BTreeMap<String, u64> {
        let key = (workspace.to_owned(), flow.to_owned());
        let mut busy = BTreeMap::new();
        let processes = self.0.processes.lock();
        for process in processes.values().filter(|process| self.live(process)) {
            for (id, (_, flows)) in &process.processors {
                let count = flows.get(&key).map_or(0, |at| at.busy.max(0));
                if count > 0 {
                    *busy.entry(id.clone()).or_default() += count.unsigned_abs();
                }
            }
        }
        busy
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
        self.counted(workspace, flow, epoch, |said| {
            said.stopping.then_some(&said.done)
        })
    }

    /// What they handled before that, likewise. Of a process that was killed it is what that one had announced last.
    pub fn answered(&self, workspace: &str, flow: &str, epoch: u64) -> BTreeMap<String, i64> {
        self.counted(workspace, flow, epoch, |said| Some(&said.answered))
    }

    /// Subscriptions of a flow's start whose readers have not all announced their counts and left: one is there still, or was killed.
    pub fn uncounted(&self, workspace: &str, flow: &str, epoch: u64) -> BTreeSet<String> {
        let key = (workspace.to_owned(), flow.to_owned());
        let processes = self.0.processes.lock();
        let here = processes.values().flat_map(|one| one.processors.values());
        here.filter_map(|(_, flows)| flows.get(&key))
            .filter(|said| said.epoch == epoch as i64)
            .flat_map(|said| said.done.keys().chain(said.answered.keys()).cloned())
            .collect()
    }

    fn counted(
        &self,
        workspace: &str,
        flow: &str,
        epoch: u64,
        of: impl Fn(&HostedFlow) -> Option<&BTreeMap<String, i64>>,
    ) -> BTreeMap<String, i64> {
        let mut counted = BTreeMap::new();
        let mut add = |said: &HostedFlow| {
            let counts = of(said).filter(|_| said.epoch == epoch as i64);
            for (subscription, count) in counts.into_iter().flatten() {
                *counted.entry(subscription.clone()).or_default() += count;
            }
        };
        let key = (workspace.to_owned(), flow.to_owned());
        let processes = self.0.processes.lock();
        for process in processes.values() {
            let here = process.processors.values();
            here.filter_map(|(_, flows)| flows.get(&key))
                .for_each(&mut add);
        }
        for left in [&self.0.left, &self.0.earlier] {
            let left = left.lock();
            let gone = left
                .iter()
                .filter(|said| said.workspace == workspace && said.flow == flow);
            gone.for_each(&mut add);
        }
        counted
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

    /// Whether the dead letters of a workspace (the text form of its key), or of one of its flows, are as many as there
    /// may be.
    pub fn room_full(&self, workspace: &str, flow: &str) -> bool {
        self.any(|process| {
            let rooms = &process.full_rooms;
            !rooms.is_empty()
                && (rooms.contains(workspace) || rooms.contains(&format!("{workspace}:{flow}")))
        })
    }

    /// Stores that purge nothing of deleted workspaces, each with the reason.
    pub fn purging_refused(&self) -> BTreeMap<String, String> {
        let processes = self.0.processes.lock();
        let live = processes.values().filter(|process| self.live(process));
        live.flat_map(|process| process.purging_refused.clone())
            .collect()
    }

    /// Whether the disk below the stores of a process is full.
    pub fn disk_full(&self) -> bool {
        self.any(|process| process.disk_full)
    }

    /// One entry per live process.
    pub fn snapshot(&self) -> Vec<Presence> {
        let processes = self.0.processes.lock();
        let mut all: Vec<_> = processes
            .iter()
            .filter(|(_, process)| self.live(process))
            .map(|(name, process)| full(name, process))
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

    fn serves(&self, process: &Process, processor: &str) -> bool {
        let said = process.processors.get(processor);
        self.live(process) && said.is_some_and(|(state, _)| state == "serving")
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

    /// The turn of a teller: what is told last is what is so.
    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.0.telling.lock().await
    }

    /// Takes what a process says of itself.
    pub(crate) fn hear(&self, presence: Presence) {
        if presence.kind == "detached" {
            let flows = || presence.processors.iter().flat_map(|said| &said.flows);
            remember(&self.0.left, flows().filter(|flow| flow.stopping));
            let counted = |flow: &&HostedFlow| !flow.stopping && !flow.answered.is_empty();
            remember(&self.0.earlier, flows().filter(counted));
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
            if matches!(presence.kind.as_str(), "full" | "purging") {
                process.purging_refused = presence.purging_refused;
            }
            if matches!(presence.kind.as_str(), "full" | "disk") {
                process.disk_full = presence.disk_full;
            }
            merge(process, &presence.kind, presence.processors);
        }
        drop(processes);
        self.0.heard.fetch_add(1, Ordering::Release);
        self.0.changed.send_modify(|n| *n += 1);
    }

    pub(crate) fn knows(&self, process: &str) -> bool {
        self.0
            .processes
            .lock()
            .get(process)
            .is_some_and(|known| !known.processors.is_empty())
    }

    /// All that this process says of itself.
    pub fn own_full(&self) -> Presence {
        let processes = self.0.processes.lock();
        let own = processes.get(&*self.0.own);
        own.map_or_else(Presence::default, |own| full(&self.0.own, own))
    }
}

/// Whether this process alone serves a processor. Nobody begins to serve without being heard, so what was found holds until
/// something is heard: until then no process is looked at.
pub(crate) struct Sole {
    view: PresenceView,
    processor: String,
    /// How often something had been heard when this process was found alone; 0: it was not.
    found: AtomicU64,
}

impl Sole {
    /// Whether it does now.
    pub(crate) fn holds(&self) -> bool {
        // Before the look: what is heard meanwhile is looked at next time.
        let heard = self.view.0.heard.load(Ordering::Acquire);
        if self.found.load(Ordering::Relaxed) == heard {
            return true;
        }
        let alone = self.view.is_alone(&self.processor);
        let found = if alone { heard } else { 0 };
        self.found.store(found, Ordering::Relaxed);
        alone
    }
}

/// Keeps what instances said when they left, the newest.
fn remember<'a>(left: &Mutex<Left>, flows: impl Iterator<Item = &'a HostedFlow>) {
    let mut left = left.lock();
    left.extend(flows.cloned());
    let over = left.len().saturating_sub(MAX_LEFT);
    left.drain(..over);
}

fn full(name: &str, process: &Process) -> Presence {
    Presence {
        process: name.to_owned(),
        kind: "full".to_owned(),
        processors: listing(&process.processors),
        full_rooms: process.full_rooms.iter().cloned().collect(),
        purging_refused: process.purging_refused.clone(),
        disk_full: process.disk_full,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_answered_is_the_sum_of_who_is_here_and_who_left() {
        let view = PresenceView::new("own".into());
        let hear = |process: &str, kind: &str, (stopping, epoch, answered): (bool, i64, i64)| {
            let flow = HostedFlow {
                workspace: "w".into(),
                flow: "f".into(),
                epoch,
                stopping,
                answered: [("q".to_owned(), answered)].into(),
                ..HostedFlow::default()
            };
            let processors = vec![HostedProcessor {
                id: "p".into(),
                state: "serving".into(),
                flows: vec![flow],
            }];
            view.hear(Presence {
                process: process.into(),
                kind: kind.into(),
                processors,
                ..Presence::default()
            });
        };
        // One is restarted, one has left the stopping flow, one is about to, and one is of an earlier start.
        hear("a", "detached", (false, 2, 5));
        hear("b", "detached", (true, 2, 7));
        hear("c", "attached", (true, 2, 11));
        hear("d", "detached", (false, 1, 100));
        let answered = view.answered("w", "f", 2);
        assert_eq!(answered, [("q".to_owned(), 23)].into());
        assert!(view.answered("w", "other", 2).is_empty());
        // One has not left yet.
        assert_eq!(view.uncounted("w", "f", 2), ["q".to_owned()].into());
        hear("c", "detached", (true, 2, 11));
        assert!(view.uncounted("w", "f", 2).is_empty());
        assert_eq!(view.answered("w", "f", 2), answered);
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_is_alone_while_no_other_live_one_serves() {
        let view = PresenceView::new("own".into());
        let hear = |process: &str, kind: &str, state: &str| {
            let processors = vec![HostedProcessor {
                id: "p".into(),
                state: state.into(),
                flows: Vec::new(),
            }];
            view.hear(Presence {
                process: process.into(),
                kind: kind.into(),
                processors,
                ..Presence::default()
            });
            view.is_alone("p")
        };
        assert!(hear("own", "full", "serving"));
        assert!(hear("other", "full", "standby"));
        assert!(!hear("other", "attached", "serving"));
        assert!(view.is_alone("another"));
        assert!(hear("other", "bye", ""));
        assert!(!hear("other", "full", "serving"));
        // It was killed.
        tokio::time::sleep(EXPIRES).await;
        assert!(view.is_alone("p"));
    }

    /// What a question of this process costs: processes are looked at once for what was heard.
    #[test]
    fn who_was_found_alone_is_looked_for_again_once_something_is_heard() {
        let view = PresenceView::new("own".into());
        let hear = |process: &str, kind: &str| {
            view.hear(Presence {
                process: process.into(),
                kind: kind.into(),
                ..Presence::default()
            });
        };
        let sole = view.sole("p");
        assert!(sole.holds());
        // A look would find it.
        let rival = Process {
            processors: [("p".to_owned(), ("serving".to_owned(), Flows::new()))].into(),
            ..Process::default()
        };
        view.0.processes.lock().insert("rival".to_owned(), rival);
        assert!(sole.holds(), "nothing was heard since");
        hear("another", "full");
        assert!(!sole.holds());
        assert!(!sole.holds(), "who was not alone is looked for each time");
        hear("rival", "bye");
        assert!(sole.holds());
    }
}
