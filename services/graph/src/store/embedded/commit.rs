//! The commit thread: changes that wait together become one journal commit, then are applied, then
//! reported. It is the only writer of the datasets in memory.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::error::GraphError;
use crate::store::embedded::accounting::Accounting;
use crate::store::embedded::batch::{self, Batch, Op, ROW_BYTES, ROW_QUADS, Run};
use crate::store::embedded::change::{Change, Done, Wanted};
use crate::store::embedded::dataset::Dataset;
use crate::store::embedded::ended::{self, Ended};
use crate::store::embedded::entry::Entry;
use crate::store::embedded::journal::{self, Appended, NewRow};
use crate::store::embedded::merge;
use crate::store::embedded::retract::{self, TakenBack};
use crate::store::embedded::shared::Shared;
use tg_collections::CollectionKey;
use tg_storage::{StorageError, survived};

struct Write {
    key: CollectionKey,
    batch: Batch,
    done: Done<bool>,
}

/// What the commit thread knows between two groups.
pub(crate) struct Commits {
    shared: Arc<Shared>,
    gone: Ended,
    accounting: Accounting,
    /// A panic left what this knows half changed, and it could not be read again yet.
    lost: bool,
}

impl Commits {
    pub(crate) fn new(shared: Arc<Shared>, gone: Ended) -> Self {
        Self {
            shared,
            gone,
            accounting: Accounting::default(),
            lost: false,
        }
    }

    /// After a panic: the journal alone says what there is. Datasets are loaded from it when they are read next.
    pub(crate) fn forget(&mut self) {
        self.shared.forget();
        self.accounting = Accounting::default();
        self.lost = match Ended::read(&self.shared) {
            Ok(gone) => {
                self.gone = gone;
                false
            }
            Err(error) => {
                tracing::error!(%error, "the journal cannot be read after a panic; changes wait");
                true
            }
        };
    }

    /// Makes the changes of a group.
    pub(crate) fn group(&mut self, group: &mut Vec<Change>) {
        if self.lost {
            self.forget();
            if self.lost {
                // Whoever waits is told that it failed.
                return group.clear();
            }
        }
        let Self {
            shared,
            gone,
            accounting,
            lost: _,
        } = self;
        let mut writes = Vec::with_capacity(group.len());
        for change in group.drain(..) {
            match change {
                Change::Write {
                    key,
                    batch,
                    kind,
                    done,
                } => match gone.refuses(&key, kind) {
                    // Nobody may be waiting any more, here and below.
                    true => drop(done.send(Ok(false))),
                    false => writes.push(Write { key, batch, done }),
                },
                Change::Retract {
                    key,
                    wanted,
                    kind,
                    done,
                } => {
                    commit(shared, accounting, std::mem::take(&mut writes));
                    let _ = done.send(match gone.refuses(&key, kind) {
                        true => Ok(Some(0)),
                        false => take_back(shared, accounting, key, &wanted),
                    });
                }
                Change::End { end, done } => {
                    commit(shared, accounting, std::mem::take(&mut writes));
                    let _ = done.send(ended::end(shared, gone, end));
                    *accounting = Accounting::default();
                }
            }
        }
        commit(shared, accounting, writes);
    }
}

/// Nothing comes between what is seen and what is taken out: this thread is the only writer.
fn take_back(
    shared: &Arc<Shared>,
    accounting: &mut Accounting,
    key: CollectionKey,
    wanted: &Wanted,
) -> Result<Option<usize>, GraphError> {
    let entry = shared.entries.lock().get(&key).cloned();
    let Some(dataset) = entry.and_then(|entry| entry.loaded()) else {
        return Ok(None);
    };
    let TakenBack { gone, unmarked } = retract::plan(&dataset, wanted)?;
    let count = gone.len();
    let batch = Batch::take_back(gone, unmarked);
    if !batch.is_empty() {
        let (done, mut result) = oneshot::channel();
        commit(shared, accounting, vec![Write { key, batch, done }]);
        result.try_recv().unwrap_or(Err(GraphError::Closed))?;
    }
    Ok(Some(count))
}

fn commit(shared: &Arc<Shared>, accounting: &mut Accounting, writes: Vec<Write>) {
    let writes = within_limits(shared, accounting, writes);
    if writes.is_empty() {
        return;
    }
    let mut result = Err(GraphError::Closed);
    let whole = survived(|| {
        result = append(shared, &writes).and_then(|places| apply(shared, &writes, &places));
    });
    if !whole {
        // Before anybody is told: who asks next must not be answered from what is half changed.
        shared.forget();
    }
    metrics::counter!("tg_graph_commits_total").increment(1);
    if let Err(error) = &result {
        // The store itself logs a full disk.
        if *error != GraphError::Journal(StorageError::Full) {
            tracing::warn!(%error, changes = writes.len(), "changes of the graph failed");
        }
        *accounting = Accounting::default();
    }
    for write in writes {
        // Nobody may be waiting any more.
        let _ = write.done.send(result.clone().map(|()| true));
    }
}

/// Refuses what is above a quota or has no room in memory. What only takes out is always let through.
fn within_limits(shared: &Shared, accounting: &mut Accounting, writes: Vec<Write>) -> Vec<Write> {
    accounting.begin();
    let mut kept = Vec::with_capacity(writes.len());
    for write in writes {
        let adds = write.batch.adds();
        let admitted = if adds.quads == 0 {
            Ok(())
        } else {
            accounting.admit(shared, &write.key, adds)
        };
        match admitted {
            Ok(()) => kept.push(write),
            Err(error) => {
                metrics::counter!("tg_graph_writes_refused_total").increment(1);
                let _ = write.done.send(Err(error));
            }
        }
    }
    kept
}

fn append(shared: &Shared, writes: &[Write]) -> Result<Vec<Appended>, GraphError> {
    let rows = rows(writes)?;
    let appended = shared
        .journal
        .write_here(move |tx| journal::append(tx, &rows));
    Ok(appended?)
}

/// Runs of the same dataset and operation that follow each other share a row.
fn rows(writes: &[Write]) -> Result<Vec<NewRow>, GraphError> {
    struct Open<'a> {
        key: &'a CollectionKey,
        op: Op,
        quads: usize,
        text: Vec<u8>,
    }
    let mut open: Vec<Open<'_>> = Vec::new();
    for write in writes {
        for run in &write.batch.runs {
            let last = open.iter_mut().rev().find(|row| *row.key == write.key);
            match last {
                Some(row)
                    if row.op == run.op && row.quads < ROW_QUADS && row.text.len() < ROW_BYTES =>
                {
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
                bytes: row.text.len(),
            })
        })
        .collect()
}

/// Brings the datasets in memory up to the journal.
fn apply(shared: &Arc<Shared>, writes: &[Write], places: &[Appended]) -> Result<(), GraphError> {
    #[cfg(test)]
    assert!(
        !shared
            .dies
            .swap(false, std::sync::atomic::Ordering::Relaxed),
        "on purpose"
    );
    let mut last: HashMap<&CollectionKey, (&Appended, u64)> = HashMap::new();
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use oxigraph::model::{GraphName, NamedNode, Quad};
    use tg_storage::Durability;

    use super::*;
    use crate::engine::pattern::Pattern;
    use crate::options::Limits;
    use crate::store::embedded::EmbeddedGraph;

    fn quad(number: usize) -> Vec<Quad> {
        let node = |text: String| NamedNode::new(text).unwrap();
        vec![Quad::new(
            node(format!("urn:s{number}")),
            node("urn:p".to_owned()),
            node("urn:o".to_owned()),
            GraphName::DefaultGraph,
        )]
    }

    /// Whoever waited is told, the journal is believed, and the next change is made: nobody has to start anything again.
    #[tokio::test]
    async fn a_panic_of_the_commit_thread_is_survived() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("graph.db");
        let engine = EmbeddedGraph::open(&path, Durability::Process, Limits::default()).unwrap();
        let key = CollectionKey::new("w", "c");
        let count = async || {
            let found = engine.find(&key, Pattern::default(), None).await;
            found.unwrap().len()
        };
        engine.insert(&key, quad(0)).await.unwrap();
        assert_eq!(count().await, 1);
        engine.shared.dies.store(true, Ordering::Relaxed);
        let failed = engine.insert(&key, quad(1)).await;
        assert_eq!(failed, Err(GraphError::Closed));
        assert_eq!(count().await, 2, "the journal had it");
        engine.insert(&key, quad(2)).await.unwrap();
        assert_eq!(count().await, 3);
        drop(engine);
    }
}
