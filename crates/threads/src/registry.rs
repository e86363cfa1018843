//! Which thread is which chain. Chains are lists of names below the root, unique within a tree; they are shown to nobody
//! but those who may look into everything.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::envelope::{Caller, Place};
use crate::id::{ThreadId, World};
use crate::name::{Name, SYSTEM};
use crate::taken::{Owner, Taken};
use crate::tree::{Chain, Tree};

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest chain below the root.
    pub chain: usize,
    /// Most live threads in one tree.
    pub threads: usize,
    /// Most live threads in all trees of the registry.
    pub live: usize,
    /// Most trees; one of the registry that nothing is in progress of makes room.
    pub trees: usize,
    /// Most ids of ended threads of the registry that are remembered, so that nobody has one again.
    pub ended: usize,
    /// A tree that was untouched for so many milliseconds ends.
    pub idle: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            chain: 64,
            threads: 1000,
            live: 25_000,
            trees: 5_000,
            ended: 100_000,
            idle: 24 * 3600 * 1000,
        }
    }
}

/// A limit that is reached, or a thread that is not there: all of it is one fault of routing to whoever asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The chain would be too long.
    #[error("the chain is too long")]
    Chain,
    /// The tree has too many threads.
    #[error("the tree has too many live threads")]
    Threads,
    /// All trees are busy.
    #[error("there are too many trees")]
    Trees,
    /// Nobody knows the thread, or it has ended.
    #[error("the thread has ended")]
    Ended,
}

/// The last part of a room, one in so many, is for registries that have little.
const RESERVE: usize = 10;
/// A registry has little while it has less than one in so many of all places.
const LITTLE: usize = 50;
/// One in so many places is made free at once where there is none.
const TOGETHER: usize = 100;
/// Ids of ended threads that are remembered for each place of a room.
const REMEMBERED: usize = 4;

/// Room for the live threads of all registries that share it. Each has a part of it as its own limit, and makes room for itself
/// with trees of its own alone. Whoever holds all registries may have another one [give up](Registry::give_up) a tree. A tenth
/// is for registries that have less than a fiftieth: a few busy ones do not take it all.
///
/// An id that one registry has or had is taken in all of them. Ended ones are remembered up to four times as many as the room
/// has places; beyond that the oldest go first.
#[derive(Debug, Clone)]
pub struct Room {
    used: Arc<AtomicUsize>,
    most: usize,
    taken: Arc<Mutex<Taken>>,
}

impl Default for Room {
    /// Twice what one registry has by default.
    fn default() -> Self {
        Self::of(2 * Limits::default().live)
    }
}

impl Room {
    /// For so many live threads.
    pub fn of(most: usize) -> Self {
        Self {
            used: Arc::default(),
            most,
            taken: Arc::new(Mutex::new(Taken::of(most.saturating_mul(REMEMBERED)))),
        }
    }

    /// For how many more threads there is room.
    pub fn free(&self) -> usize {
        let used = self.used.load(Ordering::Acquire);
        self.most.saturating_sub(used)
    }

    /// How many places are made free at once, beside those that are needed.
    pub fn together(&self) -> usize {
        self.most / TOGETHER
    }

    /// Whether a registry that has so many has little: it finds room as long as there is any.
    pub fn is_little(&self, own: usize) -> bool {
        own < (self.most / LITTLE).max(1)
    }

    /// For a registry that has so many.
    fn take(&self, own: usize) -> bool {
        let kept = match self.is_little(own) {
            true => 0,
            false => self.most / RESERVE,
        };
        let more = |used: usize| (used + kept < self.most).then_some(used + 1);
        let taken = self
            .used
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        taken.is_ok()
    }

    /// Taken although there is none, for what must not be lost.
    fn exceed(&self) {
        self.used.fetch_add(1, Ordering::AcqRel);
    }

    fn give_back(&self, count: usize) {
        self.used.fetch_sub(count, Ordering::AcqRel);
    }
}

/// All live threads of a workspace.
#[derive(Debug)]
pub struct Registry {
    limits: Limits,
    room: Room,
    /// Whose ids they are, in the room.
    owner: Owner,
    root: Option<(ThreadId, Name)>,
    /// Trees by their first thread.
    trees: HashMap<ThreadId, Tree>,
    tree_of: HashMap<ThreadId, ThreadId>,
    /// Ended to make room, and nobody was notified yet.
    pushed_out: Vec<ThreadId>,
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.room.give_back(self.tree_of.len());
        let ids = self.tree_of.keys().copied().chain(self.root());
        let mut taken = self.room.taken.lock();
        taken.end(self.owner, ids, self.limits.ended);
    }
}

impl Registry {
    /// An empty one.
    pub fn new(limits: Limits, room: Room) -> Self {
        let owner = room.taken.lock().enter();
        Self {
            limits,
            room,
            owner,
            root: None,
            trees: HashMap::new(),
            tree_of: HashMap::new(),
            pushed_out: Vec::new(),
        }
    }

    /// The root thread of this start; made once.
    pub fn initialize_root(&mut self, mesh: &Name, world: &mut dyn World) -> ThreadId {
        let taken = &self.room.taken;
        let root = || (fresh(&mut taken.lock(), world), mesh.clone());
        self.root.get_or_insert_with(root).0
    }

    /// The root thread, once there is one.
    pub fn root(&self) -> Option<ThreadId> {
        self.root.as_ref().map(|(id, _)| *id)
    }

    /// The id that a message from outside would have; nothing is registered.
    pub fn id_for(&self, caller: &Caller, world: &mut dyn World) -> ThreadId {
        match caller.thread {
            Some(id) if self.is_free(id) || self.is_theirs(id, caller) => id,
            _ => world.fresh(),
        }
    }

    /// The thread of a message from outside.
    ///
    /// # Errors
    /// All trees are busy.
    pub fn register(
        &mut self,
        caller: &Caller,
        target: &Name,
        world: &mut dyn World,
    ) -> Result<ThreadId, Refused> {
        if let Some(id) = caller.thread
            && self.is_theirs(id, caller)
            && self.ends_in(id, target)
        {
            self.touch(id, world.time());
            return Ok(id);
        }
        self.make_room(None).ok_or(Refused::Trees)?;
        let id = self.claim(caller.thread, world);
        let chain = vec![caller.initiator.clone(), target.clone()];
        let tree = Tree::new(caller, id, chain, world.time());
        self.trees.insert(id, tree);
        self.tree_of.insert(id, id);
        Ok(id)
    }

    /// The whole chain of a live thread, for who may look into everything.
    pub fn lookup(&self, id: ThreadId) -> Option<Vec<Name>> {
        let (root, mesh) = self.root.as_ref()?;
        let below = match *root == id {
            true => Chain::new(),
            false => self.chain(id)?.clone(),
        };
        let mut whole = vec![Name::known(SYSTEM), mesh.clone()];
        whole.extend(below);
        Some(whole)
    }

    /// The thread of this chain with one more name.
    ///
    /// # Errors
    /// A limit is reached, or the thread has ended.
    pub fn extend(
        &mut self,
        id: ThreadId,
        next: &Name,
        world: &mut dyn World,
    ) -> Result<ThreadId, Refused> {
        let mut chain = self.chain(id).ok_or(Refused::Ended)?.clone();
        chain.push(next.clone());
        let first = self.first_of(id, world)?;
        if let Some(known) = self.known(first, &chain) {
            return Ok(known);
        }
        if chain.len() > self.limits.chain {
            return Err(Refused::Chain);
        }
        let own = self.trees.get(&first).map_or(0, |tree| tree.threads.len());
        if own >= self.limits.threads {
            return Err(Refused::Threads);
        }
        self.make_room(Some(first)).ok_or(Refused::Threads)?;
        self.add(first, chain, world)
    }

    /// Whom a respond goes to, and on which thread; `None` where the chain is exhausted.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn prune(
        &mut self,
        id: ThreadId,
        world: &mut dyn World,
    ) -> Result<Option<(Name, ThreadId)>, Refused> {
        if self.root() == Some(id) {
            return Ok(None);
        }
        let mut chain = self.chain(id).ok_or(Refused::Ended)?.clone();
        chain.pop();
        let Some(target) = chain.last().cloned() else {
            return Ok(None);
        };
        let first = self.first_of(id, world)?;
        // A respond has no limit: in a tree only the one chain of whoever came in from outside is missing.
        let thread = match self.known(first, &chain) {
            Some(known) => known,
            None => {
                self.room.exceed();
                self.add(first, chain, world)?
            }
        };
        Ok(Some((target, thread)))
    }

    /// The first thread of the tree of a live one, which is touched.
    fn first_of(&mut self, id: ThreadId, world: &dyn World) -> Result<ThreadId, Refused> {
        let first = *self.tree_of.get(&id).ok_or(Refused::Ended)?;
        self.touch(id, world.time());
        Ok(first)
    }

    fn known(&self, first: ThreadId, chain: &Chain) -> Option<ThreadId> {
        self.trees.get(&first)?.by_chain.get(chain).copied()
    }

    /// Room was taken for it.
    fn add(
        &mut self,
        first: ThreadId,
        chain: Chain,
        world: &mut dyn World,
    ) -> Result<ThreadId, Refused> {
        let Some(tree) = self.trees.get_mut(&first) else {
            self.room.give_back(1);
            return Err(Refused::Ended);
        };
        let new = fresh(&mut self.room.taken.lock(), world);
        tree.add(new, chain, world.time());
        self.tree_of.insert(new, first);
        Ok(new)
    }

    /// Ends the threads below one: those whose chain goes on from its own.
    pub fn terminate_below(&mut self, id: ThreadId) -> Vec<ThreadId> {
        self.end(id, false)
    }

    /// Ends a thread and those below it.
    pub fn terminate(&mut self, id: ThreadId) -> Vec<ThreadId> {
        self.end(id, true)
    }

    /// Ends the whole tree of a thread.
    pub fn terminate_tree(&mut self, id: ThreadId) -> Vec<ThreadId> {
        match self.tree_of.get(&id).copied() {
            Some(first) => self.end_tree(first),
            None => Vec::new(),
        }
    }

    /// Ends trees that nobody touched for long.
    pub fn cleanup(&mut self, now: u64) -> Vec<ThreadId> {
        let idle = self.limits.idle;
        let old = |tree: &Tree| now.saturating_sub(tree.touched) >= idle;
        let due: Vec<_> = self.trees.iter().filter(|(_, tree)| old(tree)).collect();
        let due: Vec<_> = due.into_iter().map(|(first, _)| *first).collect();
        due.into_iter()
            .flat_map(|first| self.end_tree(first))
            .collect()
    }

    /// Whether a thread is alive.
    pub fn is_live(&self, id: ThreadId) -> bool {
        self.tree_of.contains_key(&id) || self.root() == Some(id)
    }

    /// How many threads are alive, the root left out.
    pub fn live(&self) -> usize {
        self.tree_of.len()
    }

    /// Whether a live thread is this caller's.
    pub fn is_theirs(&self, id: ThreadId, caller: &Caller) -> bool {
        self.tree(id).is_some_and(|tree| tree.is_of(caller))
    }

    /// How many messages handlers have, or are about to, in the whole tree of a thread.
    pub fn in_progress(&self, id: ThreadId) -> u32 {
        self.tree(id).map_or(0, |tree| tree.in_flight)
    }

    /// All live threads of the tree of a thread.
    pub fn threads_beside(&self, id: ThreadId) -> impl Iterator<Item = ThreadId> {
        let threads = self.tree(id).map(|tree| tree.threads.keys().copied());
        threads.into_iter().flatten()
    }

    /// Whether a live thread is in a place.
    pub fn is_in(&self, id: ThreadId, place: &Place) -> bool {
        self.tree(id).is_some_and(|tree| tree.place == *place)
    }

    pub(crate) fn tree(&self, id: ThreadId) -> Option<&Tree> {
        self.trees.get(self.tree_of.get(&id)?)
    }

    pub(crate) fn tree_mut(&mut self, id: ThreadId) -> Option<&mut Tree> {
        self.trees.get_mut(self.tree_of.get(&id)?)
    }

    /// Whether nobody has or had an id, in this workspace or another.
    fn is_free(&self, id: ThreadId) -> bool {
        !self.room.taken.lock().has(id)
    }

    /// The given id where it is free, else a fresh one. It is taken at once: of two workspaces one has it.
    fn claim(&self, given: Option<ThreadId>, world: &mut dyn World) -> ThreadId {
        let mut taken = self.room.taken.lock();
        match given {
            Some(id) if !taken.has(id) => {
                taken.take(id);
                id
            }
            _ => fresh(&mut taken, world),
        }
    }

    fn ends_in(&self, id: ThreadId, target: &Name) -> bool {
        self.chain(id).is_some_and(|chain| {
            // A caller goes on with whom it called itself, never in the middle of what followed.
            chain.len() == 2 && chain.last() == Some(target)
        })
    }

    fn chain(&self, id: ThreadId) -> Option<&Chain> {
        Some(&self.tree(id)?.threads.get(&id)?.chain)
    }

    /// The thread of whoever called on this one. Whoever sends a first message from outside has none yet.
    pub(crate) fn parent(&self, id: ThreadId) -> Option<ThreadId> {
        let tree = self.tree(id)?;
        let (_, above) = tree.threads.get(&id)?.chain.split_last()?;
        tree.by_chain.get(above).copied()
    }

    fn touch(&mut self, id: ThreadId, now: u64) {
        if let Some(tree) = self.tree_mut(id) {
            tree.touched = now;
        }
    }

    /// Makes room for one more thread, and takes it. Of the registry's own trees the one goes that was untouched for
    /// longest; one that something is in progress of stays, and so does the one that the thread is for.
    fn make_room(&mut self, within: Option<ThreadId>) -> Option<()> {
        let mut quiet = None;
        loop {
            let trees = within.is_some() || self.trees.len() < self.limits.trees;
            let own = self.tree_of.len();
            if trees && own < self.limits.live && self.room.take(own) {
                return Some(());
            }
            let first = quiet.get_or_insert_with(|| self.quiet(within)).pop()?;
            let gone = self.end_tree(first);
            self.pushed_out.extend(gone);
        }
    }

    /// The trees that nothing is in progress of, by their first threads: the one that was untouched for longest comes last. The
    /// tree of `but` is none of them.
    pub fn quiet(&self, but: Option<ThreadId>) -> Vec<ThreadId> {
        let but = but.and_then(|id| self.tree_of.get(&id));
        let quiet = self.trees.iter();
        let quiet = quiet.filter(|(first, tree)| tree.in_flight == 0 && Some(*first) != but);
        let mut quiet: Vec<_> = quiet.map(|(first, tree)| (tree.touched, *first)).collect();
        quiet.sort_unstable_by(|one, other| other.cmp(one));
        quiet.into_iter().map(|(_, first)| first).collect()
    }

    /// Ends a tree, one of [`Registry::quiet`]: its room is for another registry.
    pub fn give_up(&mut self, first: ThreadId) -> Vec<ThreadId> {
        self.end_tree(first)
    }

    /// What was ended to make room since this was asked last.
    pub(crate) fn pushed_out(&mut self) -> Vec<ThreadId> {
        std::mem::take(&mut self.pushed_out)
    }

    fn end(&mut self, id: ThreadId, itself: bool) -> Vec<ThreadId> {
        let Some(tree) = self.tree_mut(id) else {
            return Vec::new();
        };
        let ended = tree.end(id, itself);
        let empty = tree.threads.is_empty();
        if let (true, Some(first)) = (empty, self.tree_of.get(&id).copied()) {
            self.trees.remove(&first);
        }
        self.note(&ended);
        ended
    }

    fn end_tree(&mut self, first: ThreadId) -> Vec<ThreadId> {
        let tree = self.trees.remove(&first);
        let ended: Vec<_> = tree
            .into_iter()
            .flat_map(|tree| tree.threads.into_keys())
            .collect();
        self.note(&ended);
        ended
    }

    fn note(&mut self, ended: &[ThreadId]) {
        for id in ended {
            if self.tree_of.remove(id).is_some() {
                self.room.give_back(1);
            }
        }
        let mut taken = self.room.taken.lock();
        taken.end(self.owner, ended.iter().copied(), self.limits.ended);
    }
}

/// An id of the system's own, which is taken from now on.
fn fresh(taken: &mut Taken, world: &mut dyn World) -> ThreadId {
    let id = world.fresh();
    taken.take(id);
    id
}
