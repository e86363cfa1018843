//! The end of whole collections: they go at once, and what their journals took up is given back in small
//! pieces beside everything else.

use std::collections::HashMap;
use std::sync::Arc;

use futures::executor::block_on;
use tokio::sync::oneshot;

use crate::error::GraphError;
use crate::store::embedded::change::{Change, End};
use crate::store::embedded::entry::Entry;
use crate::store::embedded::handle::EmbeddedGraph;
use crate::store::embedded::journal;
use crate::store::embedded::shared::{CHORES, Shared};
use tg_collections::{CollectionKey, WriteKind};

/// Journal rows given back in one transaction.
const ROWS: usize = 16;

/// The last generation that ended of each name, as the journal has it.
#[derive(Debug, Default)]
pub(crate) struct Ended(HashMap<(String, String), i64>);

impl Ended {
    pub(crate) fn read(shared: &Shared) -> Result<Self, GraphError> {
        let rows = block_on(shared.journal.read(journal::ended))?;
        Ok(Self(
            rows.into_iter()
                .map(|(workspace, collection, last)| ((workspace, collection), last))
                .collect(),
        ))
    }

    /// Whether a change comes too late.
    pub(crate) fn refuses(&self, key: &CollectionKey, kind: WriteKind) -> bool {
        let name = || (key.workspace().to_owned(), key.collection().to_owned());
        kind == WriteKind::Tracked
            && !self.0.is_empty()
            && self
                .0
                .get(&name())
                .is_some_and(|last| key.generation() <= *last)
    }

    fn note(&mut self, end: &End) {
        match end {
            End::Collection(key) => {
                let name = (key.workspace().to_owned(), key.collection().to_owned());
                let last = self.0.entry(name).or_insert(key.generation());
                *last = key.generation().max(*last);
            }
            End::Workspace(workspace) => self.0.retain(|(of, _), _| of != workspace),
        }
    }
}

/// Ends datasets: durable when it returns. Returns how many quads they named.
pub(crate) fn end(shared: &Arc<Shared>, ended: &mut Ended, end: End) -> Result<u64, GraphError> {
    let what = end.clone();
    let count = block_on(shared.journal.write(move |tx| match &what {
        End::Collection(key) => journal::end_collection(tx, key),
        End::Workspace(workspace) => journal::end_workspace(tx, workspace),
    }))?;
    ended.note(&end);
    let mut gone = Vec::new();
    shared.entries.lock().retain(|key, entry| {
        let ends = end.holds(key);
        if ends {
            gone.push(entry.clone());
        }
        !ends
    });
    gone.iter().for_each(|entry| entry.retire());
    purge(shared.clone(), gone);
    Ok(count)
}

/// Frees memory, then journal rows, on a thread of its own. One that is at work already sees new rows too.
pub(crate) fn purge(shared: Arc<Shared>, gone: Vec<Arc<Entry>>) {
    let work = move || {
        drop(gone);
        let Some(_only) = shared.purging.try_lock() else {
            return;
        };
        loop {
            match block_on(shared.journal.write(|tx| journal::purge_some(tx, ROWS))) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    // The next end, or the next start, goes on.
                    tracing::warn!(%error, "space of the graph journal was not given back");
                    return;
                }
            }
        }
    };
    let started = std::thread::Builder::new()
        .name("graph-purge".to_owned())
        .stack_size(CHORES)
        .spawn(work);
    if let Err(error) = started {
        tracing::warn!(%error, "space of the graph journal was not given back");
    }
}

impl EmbeddedGraph {
    /// Ends a collection in this generation and those before, for good: what runs of these still write is
    /// dropped. Returns about how many quads there were. Doing it again changes nothing.
    ///
    /// # Errors
    /// When the journal failed; nothing has ended then.
    pub async fn drop_collection(&self, last: &CollectionKey) -> Result<u64, GraphError> {
        self.end(End::Collection(last.clone())).await
    }

    /// Ends everything of a workspace.
    ///
    /// # Errors
    /// When the journal failed; nothing has ended then.
    pub async fn drop_workspace(&self, workspace: &str) -> Result<u64, GraphError> {
        self.end(End::Workspace(workspace.to_owned())).await
    }

    async fn end(&self, end: End) -> Result<u64, GraphError> {
        let (done, result) = oneshot::channel();
        self.send(Change::End { end, done }, result).await
    }
}

#[cfg(test)]
mod tests;
