//! Which state of a dataset somebody looks at: whoever judges by several looks must have looked at one state.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Changes of a dataset, counted.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Held for writing while a change is committed.
    committing: RwLock<()>,
    /// Odd while a change is committed.
    count: AtomicU64,
    /// Changes of the policies among them.
    of_policies: AtomicU64,
    /// Nothing is told any more: what is stored has changes of its own.
    retired: AtomicBool,
}

/// A change that is being committed.
pub(super) struct Change<'a> {
    changes: &'a Changes,
    _alone: RwLockWriteGuard<'a, ()>,
}

impl Changes {
    /// Until what comes back is dropped, a change is committed.
    pub(super) fn begin(&self, of_policies: bool) -> Change<'_> {
        let alone = self.committing.write();
        self.count.fetch_add(1, Ordering::SeqCst);
        if of_policies {
            self.of_policies.fetch_add(1, Ordering::SeqCst);
        }
        Change {
            changes: self,
            _alone: alone,
        }
    }

    /// How many there were, if none is committed at the moment.
    pub(super) fn settled(&self) -> Option<u64> {
        let count = self.count.load(Ordering::SeqCst);
        count.is_multiple_of(2).then_some(count)
    }

    /// How many of them were of the policies.
    pub(super) fn of_policies(&self) -> u64 {
        self.of_policies.load(Ordering::SeqCst)
    }

    /// The dataset is let go of: changes of what is stored are told to another one from here on.
    pub(super) fn retire(&self) {
        self.retired.store(true, Ordering::SeqCst);
    }

    /// Whether it is told what changes.
    pub(super) fn is_told(&self) -> bool {
        !self.retired.load(Ordering::SeqCst)
    }

    /// Waits until nothing is committed, and for no longer.
    pub(super) fn wait(&self) {
        drop(self.hold());
    }

    /// While this is held nothing changes: whoever commits waits, so it is held for moments only, and never while policies judge.
    pub(super) fn hold(&self) -> RwLockReadGuard<'_, ()> {
        self.committing.read()
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.changes.count.fetch_add(1, Ordering::SeqCst);
    }
}
