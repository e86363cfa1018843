//! All threads that grew from one message from outside.

use std::collections::HashMap;

use crate::envelope::{Caller, Place};
use crate::id::ThreadId;
use crate::name::Name;

/// Names below the root, the first caller first.
pub(crate) type Chain = Vec<Name>;

/// A live thread.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) chain: Chain,
    /// When it began.
    pub(crate) since: u64,
    /// Messages in a row that its listener got from itself or from the system.
    pub(crate) iterations: u32,
    /// Messages in a row of its listener that could not be processed.
    pub(crate) huhs: u32,
}

/// A tree of threads.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Its first thread, which may have ended.
    pub(crate) first: ThreadId,
    pub(crate) place: Place,
    initiator: Name,
    principal: String,
    pub(crate) threads: HashMap<ThreadId, Thread>,
    pub(crate) by_chain: HashMap<Chain, ThreadId>,
    /// When something was sent in it last.
    pub(crate) touched: u64,
    /// Messages that a handler has now.
    pub(crate) in_flight: u32,
}

impl Tree {
    pub(crate) fn new(caller: &Caller, id: ThreadId, chain: Chain, now: u64) -> Self {
        let mut tree = Self {
            first: id,
            place: caller.place.clone(),
            initiator: caller.initiator.clone(),
            principal: caller.principal.clone(),
            threads: HashMap::new(),
            by_chain: HashMap::new(),
            touched: now,
            in_flight: 0,
        };
        tree.add(id, chain, now);
        tree
    }

    pub(crate) fn add(&mut self, id: ThreadId, chain: Chain, now: u64) {
        self.by_chain.insert(chain.clone(), id);
        let thread = Thread {
            chain,
            since: now,
            iterations: 0,
            huhs: 0,
        };
        self.threads.insert(id, thread);
    }

    pub(crate) fn is_of(&self, caller: &Caller) -> bool {
        (&self.place, &self.initiator, &self.principal)
            == (&caller.place, &caller.initiator, &caller.principal)
    }

    /// Takes out the threads below one, and itself if wanted.
    pub(crate) fn end(&mut self, id: ThreadId, itself: bool) -> Vec<ThreadId> {
        let Some(above) = self.threads.get(&id).map(|thread| thread.chain.clone()) else {
            return Vec::new();
        };
        let goes =
            |chain: &Chain| chain.starts_with(&above) && (itself || chain.len() > above.len());
        let gone: Vec<_> = self
            .threads
            .iter()
            .filter(|(_, thread)| goes(&thread.chain))
            .collect();
        let gone: Vec<_> = gone.into_iter().map(|(id, _)| *id).collect();
        for id in &gone {
            if let Some(thread) = self.threads.remove(id) {
                self.by_chain.remove(&thread.chain);
            }
        }
        gone
    }
}
