//! Merging a journal: its past becomes a snapshot of what is alive. Runs beside everything else; one at
//! a time.

use std::sync::Arc;

use futures::executor::block_on;
use oxigraph::model::Quad;
use oxigraph::store::QuadIter;

use crate::engine::quota::Usage;
use crate::error::GraphError;
use crate::store::embedded::batch::{self, Op, ROW_BYTES, ROW_QUADS};
use crate::store::embedded::by_hand;
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
    let Some(parts) = snapshot(
        frozen.quads,
        &frozen.by_hand,
        shared.limits.memory / SNAPSHOT,
    )?
    else {
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

/// A part of a snapshot that is not full yet.
struct Open {
    op: Op,
    quads: Vec<Quad>,
    bytes: usize,
}

impl Open {
    fn of(op: Op) -> Self {
        Self {
            op,
            quads: Vec::new(),
            bytes: 0,
        }
    }

    fn is_full(&self) -> bool {
        self.quads.len() >= ROW_QUADS || self.bytes >= ROW_BYTES
    }

    fn take(&mut self) -> Result<Snapshot, GraphError> {
        let text = batch::encode(&self.quads);
        let held = self.op.adds(self.quads.len() as u64, text.len() as u64);
        let body = batch::pack(&text)?;
        let op = self.op;
        *self = Self::of(op);
        Ok(Snapshot { op, held, body })
    }
}

/// What is alive, as rows; `None` where that is more than `most` bytes.
fn snapshot(
    quads: QuadIter<'static>,
    by_hand: &by_hand::Frozen,
    most: u64,
) -> Result<Option<Vec<Snapshot>>, GraphError> {
    let (mut parts, mut packed) = (Vec::new(), 0_u64);
    let (mut found, mut loaded) = (Open::of(Op::Insert), Open::of(Op::Load));
    let mut end = |open: &mut Open, parts: &mut Vec<Snapshot>| {
        let part = open.take()?;
        packed = packed.saturating_add(part.body.len() as u64);
        parts.push(part);
        Ok::<_, GraphError>(packed <= most)
    };
    for quad in quads {
        let quad = quad?;
        let open = match by_hand.has(&quad) {
            true => &mut loaded,
            false => &mut found,
        };
        open.bytes += batch::length(&quad);
        open.quads.push(quad);
        if open.is_full() && !end(open, &mut parts)? {
            return Ok(None);
        }
    }
    for open in [&mut found, &mut loaded] {
        if !open.quads.is_empty() && !end(open, &mut parts)? {
            return Ok(None);
        }
    }
    Ok(Some(parts))
}
