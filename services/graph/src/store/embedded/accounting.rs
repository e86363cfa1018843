//! What workspaces hold, as the commit thread knows it: read from the journal once, added to with each change, and
//! counted anew before something is refused.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::executor::block_on;
use tokio::time::Instant;

use crate::engine::quota::{Usage, check};
use crate::error::GraphError;
use crate::store::embedded::journal;
use crate::store::embedded::shared::Shared;
use tg_collections::CollectionKey;

/// Counting goes through a graph: a workspace at its limit has that done no more often.
const EVERY: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Default)]
pub(crate) struct Accounting {
    /// [`Shared::counts`] when the figures were read.
    at: u64,
    workspaces: HashMap<Arc<str>, Usage>,
    /// What the commit under way adds: admitted, and not in the journal yet.
    pending: HashMap<Arc<str>, Usage>,
    /// The same of all workspaces.
    pending_all: Usage,
    counted: HashMap<Arc<str>, Instant>,
}

impl Accounting {
    /// A commit begins: the one before is in the journal.
    pub(crate) fn begin(&mut self) {
        self.pending.clear();
        self.pending_all = Usage::default();
    }

    /// Notes that a workspace gets more, if it may.
    pub(crate) fn admit(
        &mut self,
        shared: &Shared,
        key: &CollectionKey,
        adds: Usage,
    ) -> Result<(), GraphError> {
        // Also for what is not in memory yet: a new dataset will be at once, any other when somebody asks.
        let all = self.pending_all.and(adds);
        let own = self.pending.get(key.workspace()).copied();
        shared.room_for(key, all, own.unwrap_or_default().and(adds))?;
        let fits = |held: Usage| {
            check(shared.limits.quota, held)?;
            shared.fits_whole(key, held, adds)
        };
        let mut held = self.held(shared, key.workspace())?.and(adds);
        if fits(held).is_err() && self.may_count(key.workspace()) {
            count(shared, key.workspace())?;
            held = self.held(shared, key.workspace())?.and(adds);
        }
        fits(held)?;
        self.workspaces.insert(key.workspace().into(), held);
        let pending = self.pending.entry(key.workspace().into()).or_default();
        *pending = pending.and(adds);
        self.pending_all = all;
        Ok(())
    }

    fn held(&mut self, shared: &Shared, workspace: &str) -> Result<Usage, GraphError> {
        let now = shared.counts.load(Ordering::Relaxed);
        if now != self.at {
            self.workspaces.clear();
            self.at = now;
        }
        if let Some(held) = self.workspaces.get(workspace) {
            return Ok(*held);
        }
        let wanted = workspace.to_owned();
        let read = shared
            .journal
            .read(move |conn| journal::held_by(conn, &wanted));
        let held = block_on(read)?
            .into_iter()
            .fold(Usage::default(), |sum, (_, held)| sum.and(held));
        let held = held.and(self.pending.get(workspace).copied().unwrap_or_default());
        self.workspaces.insert(workspace.into(), held);
        Ok(held)
    }

    fn may_count(&mut self, workspace: &str) -> bool {
        let now = Instant::now();
        self.counted.retain(|_, last| now - *last < EVERY);
        if self.counted.contains_key(workspace) {
            return false;
        }
        self.counted.insert(workspace.into(), now);
        true
    }
}

/// Counts the loaded datasets of a workspace: what was added twice or taken out is not held any more.
fn count(shared: &Shared, workspace: &str) -> Result<(), GraphError> {
    let wanted = workspace.to_owned();
    let read = shared
        .journal
        .read(move |conn| journal::held_by(conn, &wanted));
    let known: HashMap<i64, Usage> = block_on(read)?.into_iter().collect();
    let loaded: Vec<_> = {
        let entries = shared.entries.lock();
        let loaded = entries
            .values()
            .filter(|entry| known.contains_key(&entry.id()));
        loaded
            .filter_map(|entry| Some((entry.id(), entry.loaded()?)))
            .collect()
    };
    for (id, dataset) in loaded {
        let live = dataset.store().len()? as u64;
        let held = known.get(&id).copied().unwrap_or_default();
        if live >= held.quads {
            continue;
        }
        // How long the texts of what went were is known when the journal is merged.
        let usage = Usage {
            quads: live,
            bytes: held.bytes,
        };
        let journal = &shared.journal;
        journal.write_here(move |tx| journal::hold(tx, id, usage))?;
    }
    shared.recounted();
    Ok(())
}
