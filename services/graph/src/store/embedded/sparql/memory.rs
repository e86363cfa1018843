//! Memory that queries share: all of it has a limit, and one workspace may take half.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// What all queries of an engine draw from.
pub(crate) struct Memory {
    all: Arc<Account>,
    workspaces: Mutex<HashMap<Arc<str>, Weak<Account>>>,
}

/// Bytes in use of a limit. Drawing neither blocks nor allocates: it happens inside allocations.
struct Account {
    used: AtomicI64,
    limit: i64,
}

impl Account {
    fn new(limit: i64) -> Arc<Self> {
        Arc::new(Self {
            used: AtomicI64::new(0),
            limit,
        })
    }

    fn draw(&self, bytes: i64) -> bool {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        let fits = before + bytes <= self.limit;
        if !fits {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        }
        fits
    }
}

impl Memory {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            all: Account::new(i64::try_from(bytes).unwrap_or(i64::MAX)),
            workspaces: Mutex::default(),
        }
    }

    /// What a workspace's queries draw from.
    pub(super) fn share(&self, workspace: &str) -> Share {
        let mut workspaces = self.workspaces.lock();
        let known = workspaces.get(workspace).and_then(Weak::upgrade);
        let own = known.unwrap_or_else(|| {
            workspaces.retain(|_, known| known.strong_count() > 0);
            let new = Account::new(self.all.limit / 2);
            workspaces.insert(workspace.into(), Arc::downgrade(&new));
            new
        });
        Share {
            all: self.all.clone(),
            own,
        }
    }
}

/// A workspace's way to draw.
#[derive(Clone)]
pub(super) struct Share {
    all: Arc<Account>,
    own: Arc<Account>,
}

impl Share {
    /// Draws bytes; `false` if there are not so many.
    pub(super) fn draw(&self, bytes: i64) -> bool {
        if !self.own.draw(bytes) {
            return false;
        }
        let drawn = self.all.draw(bytes);
        if !drawn {
            self.own.used.fetch_sub(bytes, Ordering::Relaxed);
        }
        drawn
    }

    pub(super) fn give_back(&self, bytes: i64) {
        for account in [&self.own, &self.all] {
            account.used.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_takes_half_and_all_take_no_more_than_there_is() {
        let memory = Memory::new(100);
        let (a, b, c) = (memory.share("a"), memory.share("b"), memory.share("c"));
        assert!(a.draw(50));
        assert!(!a.draw(1) && !memory.share("a").draw(1));
        assert!(b.draw(40));
        assert!(!c.draw(20), "ten are left");
        assert!(c.draw(10));
        a.give_back(50);
        assert!(c.draw(20));
    }
}
