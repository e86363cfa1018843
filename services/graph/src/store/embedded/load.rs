//! Loading a dataset from its journal, on a thread of its own, whoever still waits for it.

use std::sync::Arc;

use futures::executor::block_on;

use crate::engine::quota::Usage;
use crate::error::GraphError;
use crate::store::embedded::batch::{self, Op, Run};
use crate::store::embedded::dataset::Dataset;
use crate::store::embedded::entry::{Entry, Published, Weight};
use crate::store::embedded::journal::{self, Row};
use crate::store::embedded::shared::Shared;
use tg_collections::CollectionKey;

/// Bytes of rows read at once; the last row may exceed them.
const ROWS: usize = 8 << 20;

/// Starts loading.
pub(crate) fn start(shared: Arc<Shared>, key: CollectionKey, entry: Arc<Entry>) {
    tokio::task::spawn_blocking(move || {
        let loaded = fits(&shared, &key, &entry).and_then(|()| load(&shared, &entry));
        if let Err(error) = loaded {
            tracing::error!(%error, "a dataset could not be loaded");
            shared.evict(&key, &entry);
            entry.fail(error);
        }
    });
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

/// Reads rows on one thread while another applies those before. Returns what was added.
fn apply(dataset: &Dataset, rows: &[Row]) -> Result<Usage, GraphError> {
    std::thread::scope(|scope| {
        let (sender, runs) = std::sync::mpsc::sync_channel(2);
        scope.spawn(move || {
            for row in rows {
                let run = batch::unpack(&row.body).map(|(quads, bytes)| {
                    let run = Run {
                        op: row.op,
                        quads,
                        text: Vec::new(),
                    };
                    (run, bytes as u64)
                });
                if sender.send(run).is_err() {
                    return;
                }
            }
        });
        runs.into_iter().try_fold(Usage::default(), |sum, run| {
            let (run, bytes) = run?;
            dataset.apply([&run].into_iter())?;
            let added = match run.op {
                Op::Insert => Usage {
                    quads: run.quads.len() as u64,
                    bytes,
                },
                Op::Delete => Usage::default(),
            };
            Ok(sum.and(added))
        })
    })
}
