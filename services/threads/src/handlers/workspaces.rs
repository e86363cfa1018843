//! The threads of all workspaces, which share one room.

use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tg_mesh::clock;
use tg_schemas::WorkspaceKey;
use tg_threads::{
    Caller, Checked, Delivery, Directory, Effect, External, FORWARDS, Pump, Registry, Room,
    ThreadId, World,
};

use super::running::Running;

/// Most workspaces that have threads at a time.
const WORKSPACES: usize = 10_000;
/// Places that a message or a return finds in the room, if others can give them up: what one return takes at most.
pub(super) const PLACES: usize = FORWARDS + 1;

/// The clock and the ids of this process.
pub(super) struct Wall;

impl World for Wall {
    fn time(&self) -> u64 {
        clock::header_millis()
    }

    fn fresh(&mut self) -> ThreadId {
        ThreadId::from_random(uuid::Uuid::new_v4().into_bytes())
    }
}

/// The pump of a workspace, and what runs on its threads.
pub(super) struct Live {
    pump: Pump,
    pub(super) running: Running,
}

impl Live {
    pub(super) fn new(pump: Pump) -> Self {
        Self {
            pump,
            running: Running::default(),
        }
    }

    /// The threads, for who may look into everything.
    pub(super) fn registry(&self) -> &Registry {
        self.pump.registry()
    }

    /// As [`Pump::external`]; idle threads end before that.
    pub(super) fn external(&mut self, external: External<'_>) -> (ThreadId, Vec<Effect>) {
        let idle = self.cleanup(Wall.time());
        let (thread, mut effects) = self.pump.external(external, &mut Wall);
        self.stop(&effects);
        effects.push(Effect::Ended(idle));
        (thread, effects)
    }

    /// As [`Pump::returned`].
    pub(super) fn returned(
        &mut self,
        directory: &Directory,
        delivery: &Delivery,
        checked: Checked,
    ) -> Vec<Effect> {
        let effects = self.pump.returned(directory, delivery, checked, &mut Wall);
        self.stop(&effects);
        effects
    }

    /// As [`Pump::close`].
    pub(super) fn close(&mut self, thread: ThreadId, caller: &Caller) -> Vec<ThreadId> {
        let ended = self.pump.close(thread, caller);
        self.running.stop(&ended);
        ended
    }

    fn cleanup(&mut self, now: u64) -> Vec<ThreadId> {
        let ended = self.pump.cleanup(now);
        self.running.stop(&ended);
        ended
    }

    fn stop(&self, effects: &[Effect]) {
        for effect in effects {
            if let Effect::Ended(threads) = effect {
                self.running.stop(threads);
            }
        }
    }
}

/// The threads of a workspace.
pub(super) type OneWorkspace = Arc<Mutex<Live>>;
/// Threads that ended in workspaces.
pub(super) type EndedIn = Vec<(WorkspaceKey, Vec<ThreadId>)>;

/// All workspaces that have threads. Whoever holds the lock of one workspace takes no other lock but that of the ids in the room,
/// under which nobody takes one.
#[derive(Default)]
pub(super) struct Workspaces {
    /// Each once its first message came.
    all: Mutex<HashMap<WorkspaceKey, OneWorkspace>>,
    room: Room,
}

impl Workspaces {
    /// The threads of a workspace; `start` makes them for whoever asks first. `None`: too many workspaces have threads.
    pub(super) fn get(
        &self,
        key: &WorkspaceKey,
        start: impl FnOnce(Room) -> Pump,
    ) -> Option<OneWorkspace> {
        let mut all = self.all.lock();
        if let Some(known) = all.get(key) {
            return Some(known.clone());
        }
        // Those of earlier generations of the workspace are nobody's any more.
        all.retain(|known, _| known.name() != key.name());
        if all.len() >= WORKSPACES {
            let used =
                |one: &OneWorkspace| Arc::strong_count(one) > 1 || one.lock().registry().live() > 0;
            all.retain(|_, one| used(one));
        }
        if all.len() >= WORKSPACES {
            return None;
        }
        let live = Live::new(start(self.room.clone()));
        let live = OneWorkspace::new(Mutex::new(live));
        all.insert(key.clone(), live.clone());
        Some(live)
    }

    /// Ends idle threads of all workspaces: also of those that nobody sends anything to. Returns what ended.
    pub(super) fn cleanup(&self, now: u64) -> EndedIn {
        let all = self.all.lock().clone();
        let ended = all.into_iter().map(|(key, one)| {
            let ended = one.lock().cleanup(now);
            (key, ended)
        });
        ended.filter(|(_, threads)| !threads.is_empty()).collect()
    }

    /// Makes room for a message or a return of a workspace, where there is none. Idle threads end, and then trees of whichever
    /// workspace has most threads: of those that nothing is in progress of, the one that was untouched for longest. A workspace
    /// that has fewer threads than the one that asks gives up nothing, and the tree of the thread that is `kept` stays. Some
    /// more room is made at once, as all trees are looked at for it. A workspace that has much makes room with its own trees
    /// alone, in its registry. Returns what ended.
    pub(super) fn make_room(
        &self,
        (own, kept): (&WorkspaceKey, Option<ThreadId>),
        places: usize,
    ) -> EndedIn {
        let all = self.all.lock();
        let is_let_in = all.len() < WORKSPACES || all.contains_key(own);
        let has_much = || {
            let own = all.get(own).map(|one| one.lock().registry().live());
            !self.room.is_little(own.unwrap_or(0))
        };
        if is_let_in && (self.room.free() >= places || has_much()) {
            return EndedIn::new();
        }
        // Threads of workspaces that nobody sends anything to end by themselves.
        let now = Wall.time();
        let mut holders = Vec::new();
        for (key, one) in all.iter() {
            let live = match key == own {
                true => Some(one.lock()),
                false => one.try_lock(),
            };
            if let Some(mut live) = live {
                let ended = live.cleanup(now);
                holders.push(Share {
                    key,
                    live,
                    quiet: None,
                    ended,
                });
            }
        }
        if self.room.free() < places {
            let least = holders.iter().find(|one| one.key == own);
            let least = least.map_or(0, |one| one.live.registry().live());
            let wanted = places + self.room.together();
            self.give_up(&mut holders, kept, (least.max(1), wanted));
        }
        let ended = holders.into_iter().filter(|one| !one.ended.is_empty());
        ended.map(|one| (one.key.clone(), one.ended)).collect()
    }

    /// The largest gives up one tree after the other until so many places are free, or none has as many threads as `least`.
    fn give_up(
        &self,
        holders: &mut [Share<'_>],
        kept: Option<ThreadId>,
        (least, wanted): (usize, usize),
    ) {
        let sizes = holders.iter().enumerate();
        let sizes = sizes.map(|(at, one)| (one.live.registry().live(), at));
        let mut by_size: BinaryHeap<(usize, usize)> = sizes.collect();
        while self.room.free() < wanted
            && let Some((size, at)) = by_size.pop()
            && size >= least
            && let Some(holder) = holders.get_mut(at)
        {
            if holder.give_up(kept) {
                by_size.push((holder.live.registry().live(), at));
            }
        }
    }
}

/// A workspace while room is made.
struct Share<'a> {
    key: &'a WorkspaceKey,
    live: MutexGuard<'a, Live>,
    /// Its trees that may go, the next one last; once the first one is to go.
    quiet: Option<Vec<ThreadId>>,
    ended: Vec<ThreadId>,
}

impl Share<'_> {
    /// Ends one of its trees; whether there was one.
    fn give_up(&mut self, kept: Option<ThreadId>) -> bool {
        let registry = self.live.registry();
        let quiet = self.quiet.get_or_insert_with(|| registry.quiet(kept));
        let Some(first) = quiet.pop() else {
            return false;
        };
        let ended = self.live.pump.give_up(first);
        self.ended.extend(ended);
        true
    }
}

#[cfg(test)]
mod tests {
    use tg_schemas::{FlowId, WorkspaceId};
    use tg_threads::{Kind, Limits, Listener, Meta, Name, Outcome, Place, Turn};

    use super::*;

    fn place() -> Place {
        Place {
            workspace: WorkspaceId::new("any").unwrap(),
            flow: FlowId::new("default").unwrap(),
        }
    }

    fn directory() -> Directory {
        let schema = serde_json::json!({"type": "object"});
        let echo = Listener::new("echo", "Echoes.", Kind::Tool)
            .and_then(|echo| echo.takes("textinput", schema.as_object().cloned().unwrap()));
        Directory::new([echo.unwrap()]).0
    }

    /// Workspaces that share a room, by their names.
    struct Shared(Workspaces, Directory);

    impl Shared {
        fn of(room: usize) -> Self {
            let workspaces = Workspaces {
                room: Room::of(room),
                ..Workspaces::default()
            };
            Self(workspaces, directory())
        }

        fn workspace(&self, name: &str) -> OneWorkspace {
            let start = |room| {
                let mesh = Name::any("mesh").unwrap();
                let limits = (Limits::default(), room, 50);
                Pump::start((&mesh, &place()), limits, ("now", 1), &mut Wall).0
            };
            let one = self.0.get(&WorkspaceKey::new(name, 0), start);
            one.unwrap()
        }

        /// A message from outside, which a listener has from now on.
        fn send(&self, name: &str) -> (ThreadId, Vec<Effect>) {
            let caller = Caller {
                place: place(),
                initiator: Name::gateway(),
                principal: "ann".to_owned(),
                thread: None,
            };
            let external = External {
                id: "question",
                caller,
                admitted: self.1.admitted("echo", "textinput", b"{}"),
                raw: b"{}",
                meta: Meta::default(),
            };
            self.workspace(name).lock().external(external)
        }

        /// One that its listener was done with: two threads stay, and nothing is in progress.
        fn done(&self, name: &str) -> ThreadId {
            let (thread, effects) = self.send(name);
            let Some(Effect::Deliver(delivery)) = effects.first() else {
                panic!("{effects:?}");
            };
            let turn = Turn::respond("textinput", serde_json::json!({}));
            let checked = Outcome::Turn(turn).checked(&self.1, delivery);
            let one = self.workspace(name);
            one.lock().returned(&self.1, delivery, checked);
            thread
        }

        fn make_room(&self, name: &str) -> Vec<(String, Vec<ThreadId>)> {
            self.make_places(name, None, 1)
        }

        fn make_places(
            &self,
            name: &str,
            kept: Option<ThreadId>,
            places: usize,
        ) -> Vec<(String, Vec<ThreadId>)> {
            let own = WorkspaceKey::new(name, 0);
            let ended = self.0.make_room((&own, kept), places);
            let named = |(key, threads): (WorkspaceKey, _)| (key.name().to_owned(), threads);
            ended.into_iter().map(named).collect()
        }

        fn is_live(&self, name: &str, thread: ThreadId) -> bool {
            self.workspace(name).lock().registry().is_live(thread)
        }
    }

    #[test]
    fn room_is_made_by_the_workspace_that_has_most() {
        let shared = Shared::of(8);
        let small = shared.done("small");
        let large: Vec<_> = (0..3).map(|_| shared.done("large")).collect();
        assert_eq!(shared.0.room.free(), 0);
        let ended = shared.make_room("new");
        let [(name, threads)] = ended.as_slice() else {
            panic!("{ended:?}");
        };
        assert_eq!((name.as_str(), threads.len()), ("large", 2));
        assert!(shared.is_live("small", small));
        let left = large.iter().filter(|one| shared.is_live("large", **one));
        assert_eq!(left.count(), 2);
        let (thread, effects) = shared.send("new");
        assert!(
            matches!(effects.first(), Some(Effect::Deliver(_))),
            "{effects:?}"
        );
        assert!(shared.is_live("new", thread));
        // There is room: nobody gives anything up.
        assert!(shared.make_room("new").is_empty());
    }

    #[test]
    fn a_message_never_ends_the_thread_that_it_goes_on_with() {
        let shared = Shared::of(200);
        let kept = shared.done("own");
        // All others are busy, and have so little that they may take the last tenth.
        let mut others = 0;
        while shared.0.room.free() > 0 {
            shared.send(&format!("busy-{}", others / 4));
            others += 1;
        }
        let ended = shared.make_places("own", Some(kept), 1);
        assert!(ended.is_empty(), "{ended:?}");
        assert!(shared.is_live("own", kept));
        let ended = shared.make_places("own", None, 1);
        assert_eq!(ended.len(), 1, "{ended:?}");
        assert!(!shared.is_live("own", kept));
    }

    /// All trees of a workspace that has much are looked at for nobody else: it has to do with its own.
    #[test]
    fn a_workspace_that_has_much_ends_nothing_of_others() {
        let shared = Shared::of(200);
        let quiet: Vec<_> = (0..60).map(|_| shared.done("quiet")).collect();
        let mut busy = 0;
        while shared.0.room.free() > 0 {
            shared.send(&format!("busy-{}", busy / 4));
            busy += 1;
        }
        assert!(shared.make_room("quiet").is_empty());
        assert!(quiet.iter().all(|one| shared.is_live("quiet", *one)));
        assert!(!shared.make_room("new").is_empty());
    }

    #[test]
    fn a_hundredth_of_the_room_is_made_at_once() {
        let shared = Shared::of(300);
        for _ in 0..130 {
            shared.done("large");
        }
        // The last tenth is for those that have little.
        let small = (0..7).flat_map(|number| [number; 3]).take(20);
        for number in small {
            shared.done(&format!("small-{number}"));
        }
        assert_eq!(shared.0.room.free(), 0);
        let ended = shared.make_room("new");
        let [(name, threads)] = ended.as_slice() else {
            panic!("{ended:?}");
        };
        assert_eq!((name.as_str(), threads.len()), ("large", 4));
        assert_eq!(shared.0.room.free(), 4);
        assert!(shared.make_room("new").is_empty());
    }

    #[test]
    fn what_is_in_progress_and_what_smaller_workspaces_have_stays() {
        let shared = Shared::of(8);
        let small = shared.done("small");
        let busy: Vec<_> = (0..6).map(|_| shared.send("busy").0).collect();
        assert_eq!(shared.0.room.free(), 0);
        assert!(shared.make_room("busy").is_empty());
        assert!(shared.is_live("small", small));
        // Whoever has nothing gets room of whoever can give some.
        let ended = shared.make_room("new");
        assert_eq!(ended.len(), 1, "{ended:?}");
        assert!(!shared.is_live("small", small));
        assert!(busy.iter().all(|one| shared.is_live("busy", *one)));
    }
}
