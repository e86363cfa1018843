//! Merging a journal: its past becomes a snapshot of what is alive. Runs beside everything else; one at
//! a time.

use std::sync::Arc;

use futures::executor::block_on;
use oxigraph::store::QuadIter;

use crate::engine::quota::Usage;
use crate::error::GraphError;
use crate::store::embedded::batch::{self, ROW_BYTES, ROW_QUADS};
use crate::store::embedded::entry::{Entry, Weight};
use crate::store::embedded::journal::{self, Snapshot};
use crate::store::embedded::shared::{CHORES, Shared};
use tg_collections::CollectionKey;

/// What a snapshot may take while it is written: this part of the memory for graphs. Texts that no compression makes
/// smaller keep their past instead.
const SNAPSHOT: u64 = 8;

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
    let Some(parts) = snapshot(frozen.quads, shared.limits.memory / SNAPSHOT)? else {
        entry.not_merged();
        return Ok(None);
    };
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

fn snapshot(mut quads: QuadIter<'static>, most: u64) -> Result<Option<Vec<Snapshot>>, GraphError> {
    let (mut parts, mut packed) = (Vec::new(), 0_u64);
    while packed <= most {
        let (mut part, mut bytes) = (Vec::new(), 0);
        while part.len() < ROW_QUADS && bytes < ROW_BYTES {
            let Some(quad) = quads.next().transpose()? else {
                break;
            };
            bytes += batch::length(&quad);
            part.push(quad);
        }
        if part.is_empty() {
            return Ok(Some(parts));
        }
        let text = batch::encode(&part);
        let held = Usage {
            quads: part.len() as u64,
            bytes: text.len() as u64,
        };
        let body = batch::pack(&text)?;
        packed = packed.saturating_add(body.len() as u64);
        parts.push(Snapshot { held, body });
    }
    Ok(None)
}
