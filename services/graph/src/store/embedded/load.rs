//! Loading a dataset from its journal, on a thread of its own, whoever still waits for it.

use std::sync::Arc;

use futures::executor::block_on;

use crate::engine::quota::Usage;
use crate::error::GraphError;
use crate::store::embedded::batch::{self, Run};
use crate::store::embedded::dataset::Dataset;
use crate::store::embedded::entry::{Entry, Published, Weight};
use crate::store::embedded::journal::{self, Row};
use crate::store::embedded::shared::{CHORES, Shared};
use tg_collections::CollectionKey;

/// Bytes of rows read at once; the last row may exceed them.
const ROWS: usize = 8 << 20;

/// Starts loading.
pub(crate) fn start(shared: Arc<Shared>, key: CollectionKey, entry: Arc<Entry>) {
    let mut loading = Loading {
        shared,
        key,
        entry,
        outcome: Err(GraphError::Closed),
    };
    tokio::task::spawn_blocking(move || loading.run());
}

/// Somebody may wait for it: however loading ends, also by a panic or with the runtime, they are told.
struct Loading {
    shared: Arc<Shared>,
    key: CollectionKey,
    entry: Arc<Entry>,
    outcome: Result<(), GraphError>,
}

impl Loading {
    fn run(&mut self) {
        let fits = fits(&self.shared, &self.key, &self.entry);
        self.outcome = fits.and_then(|()| load(&self.shared, &self.entry));
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        if let Err(error) = &self.outcome {
            tracing::error!(%error, "a dataset could not be loaded");
            self.shared.evict(&self.key, &self.entry);
            self.entry.fail(error.clone());
        }
    }
}

/// Refuses a dataset that would need more memory than is left for graphs: loading it would end the process, and again
/// each time somebody asks.
fn fits(shared: &Shared, key: &CollectionKey, entry: &Entry) -> Result<(), GraphError> {
    let id = entry.id();
    let held = block_on(shared.journal.read(move |conn| journal::held(conn, id)))?;
    let _one_by_one = shared.loading.lock();
    shared.room_for(key, held, held)?;
    entry.reserve(held);
    Ok(())
}

fn load(shared: &Shared, entry: &Entry) -> Result<(), GraphError> {
    let dataset = Arc::new(Dataset::new()?);
    let mut weight = Weight::default();
    let mut at = (0, -1);
    loop {
        let id = entry.id();
        let read = shared
            .journal
            .read(move |conn| journal::rows_after(conn, id, at, ROWS));
        let rows = block_on(read)?;
        if let Some(last) = rows.last() {
            at = (last.seq, last.part);
        }
        rows.iter().for_each(|row| weight.add(row.quads));
        weight.held = weight.held.and(apply(&dataset, &rows)?);
        if !rows.is_empty() {
            continue;
        }
        weight.live = weight.quads;
        match entry.publish(&dataset, at.0, weight) {
            Published::Ready => return Ok(()),
            Published::Behind => {}
        }
    }
}

/// Reads rows on one thread while another applies those before; where no thread can be had, this one does both. Returns
/// what was added.
fn apply(dataset: &Dataset, rows: &[Row]) -> Result<Usage, GraphError> {
    std::thread::scope(|scope| {
        let (sender, read) = std::sync::mpsc::sync_channel(2);
        let reader = std::thread::Builder::new()
            .name("graph-load".to_owned())
            .stack_size(CHORES)
            .spawn_scoped(scope, move || {
                let _ = rows.iter().try_for_each(|row| sender.send(unpack(row)));
            });
        match reader {
            Ok(_) => add(dataset, read.into_iter()),
            Err(error) => {
                tracing::debug!(%error, "a dataset is loaded by one thread");
                add(dataset, rows.iter().map(unpack))
            }
        }
    })
}

/// A run, and the bytes of its terms.
type Unpacked = Result<(Run, u64), GraphError>;

fn unpack(row: &Row) -> Unpacked {
    let (quads, bytes) = batch::unpack(&row.body)?;
    let run = Run {
        op: row.op,
        quads,
        text: Vec::new(),
    };
    Ok((run, bytes as u64))
}

fn add(dataset: &Dataset, mut runs: impl Iterator<Item = Unpacked>) -> Result<Usage, GraphError> {
    runs.try_fold(Usage::default(), |sum, run| {
        let (run, bytes) = run?;
        dataset.apply([&run].into_iter())?;
        Ok(sum.and(run.op.adds(run.quads.len() as u64, bytes)))
    })
}

#[cfg(test)]
mod tests {
    use tg_storage::Durability;

    use super::*;
    use crate::options::Limits;
    use crate::store::embedded::EmbeddedGraph;

    #[tokio::test]
    async fn who_waits_is_told_when_loading_dies() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("graph.db");
        let engine = EmbeddedGraph::open(&path, Durability::Process, Limits::default()).unwrap();
        let (key, entry) = (CollectionKey::new("w", "c"), Arc::new(Entry::loading(1)));
        let entries = || engine.shared.entries.lock();
        entries().insert(key.clone(), entry.clone());
        let loading = Loading {
            shared: engine.shared.clone(),
            key,
            entry: entry.clone(),
            outcome: Err(GraphError::Closed),
        };
        let died = tokio::task::spawn_blocking(move || {
            let _loading = loading;
            panic!("while loading");
        });
        assert!(died.await.is_err());
        assert_eq!(entry.ready().await.err(), Some(GraphError::Closed));
        assert!(entries().is_empty());
    }
}
