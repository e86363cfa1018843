//! The commit thread: changes that wait together become one journal commit, then are applied, then
//! reported. It is the only writer of the datasets in memory.

use std::collections::HashMap;
use std::sync::Arc;

use futures::executor::block_on;
use tokio::sync::{mpsc, oneshot};

use crate::DatasetKey;
use crate::batch::{self, Batch, Op, Run};
use crate::dataset::Dataset;
use crate::engine::Shared;
use crate::entry::Entry;
use crate::error::GraphError;
use crate::merge;
use crate::store::{self, Appended, NewRow};

/// Changes that share a commit.
const GROUP: usize = 128;
/// Quads of a row, about.
pub(crate) const ROW_QUADS: usize = 32_768;

type Done = oneshot::Sender<Result<(), GraphError>>;

/// Something for the commit thread.
pub(crate) enum Change {
    /// Quads come and go.
    Write {
        key: DatasetKey,
        batch: Batch,
        done: Done,
    },
    /// A dataset ends.
    Drop { key: DatasetKey, done: Done },
}

struct Write {
    key: DatasetKey,
    batch: Batch,
    done: Done,
}

/// The thread's body; ends with the last handle of the engine.
pub(crate) fn run(shared: &Arc<Shared>, mut changes: mpsc::Receiver<Change>) {
    let mut group = Vec::with_capacity(GROUP);
    while changes.blocking_recv_many(&mut group, GROUP) > 0 {
        let mut writes = Vec::with_capacity(group.len());
        for change in group.drain(..) {
            match change {
                Change::Write { key, batch, done } => writes.push(Write { key, batch, done }),
                Change::Drop { key, done } => {
                    commit(shared, std::mem::take(&mut writes));
                    let _ = done.send(drop_dataset(shared, key));
                }
            }
        }
        commit(shared, writes);
    }
}

fn drop_dataset(shared: &Shared, key: DatasetKey) -> Result<(), GraphError> {
    let gone = key.clone();
    block_on(
        shared
            .journal
            .write(move |tx| store::drop_dataset(tx, &gone)),
    )?;
    shared.entries.lock().remove(&key);
    Ok(())
}

fn commit(shared: &Arc<Shared>, writes: Vec<Write>) {
    if writes.is_empty() {
        return;
    }
    let result = append(shared, &writes).and_then(|places| apply(shared, &writes, &places));
    metrics::counter!("tg_graph_commits_total").increment(1);
    if let Err(error) = &result {
        tracing::warn!(%error, changes = writes.len(), "changes of the graph failed");
    }
    for write in writes {
        // Nobody may be waiting any more.
        let _ = write.done.send(result.clone());
    }
}

fn append(shared: &Shared, writes: &[Write]) -> Result<Vec<Appended>, GraphError> {
    let rows = rows(writes)?;
    Ok(block_on(
        shared.journal.write(move |tx| store::append(tx, &rows)),
    )?)
}

/// Runs of the same dataset and operation that follow each other share a row.
fn rows(writes: &[Write]) -> Result<Vec<NewRow>, GraphError> {
    struct Open<'a> {
        key: &'a DatasetKey,
        op: Op,
        quads: usize,
        text: Vec<u8>,
    }
    let mut open: Vec<Open<'_>> = Vec::new();
    for write in writes {
        for run in &write.batch.runs {
            let last = open.iter_mut().rev().find(|row| *row.key == write.key);
            match last {
                Some(row) if row.op == run.op && row.quads < ROW_QUADS => {
                    row.quads += run.quads.len();
                    row.text.extend_from_slice(&run.text);
                }
                _ => open.push(Open {
                    key: &write.key,
                    op: run.op,
                    quads: run.quads.len(),
                    text: run.text.clone(),
                }),
            }
        }
    }
    open.into_iter()
        .map(|row| {
            Ok(NewRow {
                key: row.key.clone(),
                op: row.op,
                quads: row.quads,
                body: batch::pack(&row.text)?.into(),
            })
        })
        .collect()
}

/// Brings the datasets in memory up to the journal.
fn apply(shared: &Arc<Shared>, writes: &[Write], places: &[Appended]) -> Result<(), GraphError> {
    let mut last: HashMap<&DatasetKey, (&Appended, u64)> = HashMap::new();
    for place in places {
        let slot = last.entry(&place.key).or_insert((place, 0));
        *slot = (place, slot.1 + 1);
    }
    for (key, (place, rows)) in last {
        let Some(entry) = entry_of(shared, place)? else {
            continue;
        };
        let runs: Vec<&Run> = writes
            .iter()
            .filter(|write| write.key == *key)
            .flat_map(|write| &write.batch.runs)
            .collect();
        match entry.apply(place.seq, rows, &runs) {
            Ok(false) => {}
            Ok(true) => merge::start(shared.clone(), key.clone(), entry),
            // The journal has it: whoever reads next loads it from there.
            Err(_) => shared.evict(key, &entry),
        }
    }
    Ok(())
}

/// The dataset in memory, if it is there or new.
fn entry_of(shared: &Shared, place: &Appended) -> Result<Option<Arc<Entry>>, GraphError> {
    let mut entries = shared.entries.lock();
    if let Some(entry) = entries.get(&place.key) {
        return Ok(Some(entry.clone()));
    }
    if !place.is_new {
        return Ok(None);
    }
    let entry = Arc::new(Entry::created(place.id, Arc::new(Dataset::new()?)));
    entries.insert(place.key.clone(), entry.clone());
    Ok(Some(entry))
}
