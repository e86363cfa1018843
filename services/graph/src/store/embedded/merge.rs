//! Merging a journal: its past becomes a snapshot of what is alive. Runs beside everything else; one at
//! a time.

use std::sync::Arc;

use futures::executor::block_on;
use oxigraph::store::QuadIter;

use crate::engine::quota::Usage;
use crate::error::GraphError;
use crate::store::embedded::batch::{self, ROW_QUADS};
use crate::store::embedded::entry::{Entry, Weight};
use crate::store::embedded::journal::{self, Snapshot};
use crate::store::embedded::shared::{CHORES, Shared};
use tg_collections::CollectionKey;

/// Starts a merge unless one is running; the next change asks again.
pub(crate) fn start(shared: Arc<Shared>, key: CollectionKey, entry: Arc<Entry>) {
    if shared.merging.is_locked() {
        return;
    }
    let work = move || {
        let Some(_only) = shared.merging.try_lock() else {
            return;
        };
        match merge(&shared, &entry) {
            Ok(Some(weight)) if weight.holds_garbage() => shared.evict(&key, &entry),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "a graph journal could not be merged"),
        }
    };
    let started = std::thread::Builder::new()
        .name("graph-merge".to_owned())
        .stack_size(CHORES)
        .spawn(work);
    if let Err(error) = started {
        tracing::warn!(%error, "a graph journal could not be merged");
    }
}

/// Writes a snapshot if it pays. Returns what the journal weighs then.
fn merge(shared: &Shared, entry: &Entry) -> Result<Option<Weight>, GraphError> {
    let Some(frozen) = entry.freeze() else {
        return Ok(None);
    };
    let (seq, before) = (frozen.seq, frozen.weight);
    let live = frozen.dataset.store().len()? as u64;
    if !before.with_live(live).is_wasteful() {
        entry.counted(live);
        return Ok(None);
    }
    let parts = snapshot(frozen.quads)?;
    let rows = parts.len().max(1) as u64;
    let held = parts
        .iter()
        .fold(Usage::default(), |sum, part| sum.and(part.held));
    let id = entry.id();
    let replaced = block_on(
        shared
            .journal
            .write(move |tx| journal::replace(tx, id, seq, before.held, &parts)),
    );
    if replaced.is_err() {
        entry.not_merged();
    }
    metrics::counter!("tg_graph_merges_total").increment(1);
    shared.recounted();
    Ok(replaced?.then(|| entry.reweigh(before, rows, held)))
}

fn snapshot(mut quads: QuadIter<'static>) -> Result<Vec<Snapshot>, GraphError> {
    let mut parts = Vec::new();
    loop {
        let part: Result<Vec<_>, _> = quads.by_ref().take(ROW_QUADS).collect();
        let part = part?;
        if part.is_empty() {
            return Ok(parts);
        }
        let text = batch::encode(&part);
        let held = Usage {
            quads: part.len() as u64,
            bytes: text.len() as u64,
        };
        let body = batch::pack(&text)?;
        parts.push(Snapshot { held, body });
    }
}
