//! Graphs in this process: datasets in memory, their journal, and who may see what when.
//!
//! One engine owns one journal file. A change is first committed to the journal, then applied, then
//! reported; readers see whole changes only. A dataset is loaded when it is first read; writing to one
//! that is not loaded only extends its journal.

pub mod batch;
mod commit;
mod dataset;
mod ended;
mod entry;
pub mod exchange;
mod journal;
mod label_cache;
mod lifecycle;
mod load;
mod merge;
mod permits;
mod quads;
mod retract;
mod retrieve;
pub mod scan;
mod sparql;
mod tally;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use oxigraph::model::Quad;
use parking_lot::Mutex;
use tg_storage::{Database, Durability, StorageError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::{SparqlAnswer, SparqlAsk};
use crate::engine::pattern::Pattern;
use crate::engine::quota::Usage;
use crate::error::GraphError;
use crate::options::Limits;
use batch::Batch;
use commit::Change;
use dataset::Dataset;
use ended::Ended;
use entry::Entry;
use permits::Permits;
use scan::Scan;
use sparql::memory::Memory;
use tg_collections::{CollectionKey, WriteKind};

/// Changes that may wait for the commit thread.
const QUEUE: usize = 256;

/// The handle; clones share the engine.
#[derive(Clone)]
pub struct EmbeddedGraph {
    pub(crate) shared: Arc<Shared>,
    committer: Arc<Committer>,
}

/// The way to the commit thread. The last handle lets it finish what waits, and waits for it.
struct Committer {
    changes: Option<mpsc::Sender<Change>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.changes = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the engine's threads share.
pub(crate) struct Shared {
    pub(crate) journal: Database,
    pub(crate) entries: Mutex<HashMap<CollectionKey, Arc<Entry>>>,
    pub(crate) limits: Limits,
    pub(crate) scans: Arc<Semaphore>,
    pub(crate) queries: Arc<Permits>,
    /// Queries whose answer is not read to its end yet.
    pub(crate) answers: Permits,
    pub(crate) queries_memory: Memory,
    pub(crate) merging: Mutex<()>,
    pub(crate) purging: Mutex<()>,
    /// Counts how often what datasets hold was counted anew, so that nobody believes older figures.
    pub(crate) counts: AtomicU64,
}

impl EmbeddedGraph {
    /// Opens the journal; loads nothing.
    ///
    /// # Errors
    /// [`StorageError::InUse`] while another process owns it; otherwise what is wrong with the file.
    pub fn open(path: &Path, durability: Durability, limits: Limits) -> Result<Self, GraphError> {
        let journal = Database::open(path, journal::MIGRATIONS, durability)?;
        Self::start(journal, limits)
    }

    /// An engine that forgets everything at its end.
    ///
    /// # Errors
    /// When there is no memory or no thread for it.
    pub fn in_memory(limits: Limits) -> Result<Self, GraphError> {
        Self::start(Database::in_memory(journal::MIGRATIONS)?, limits)
    }

    fn start(journal: Database, limits: Limits) -> Result<Self, GraphError> {
        let shared = Arc::new(Shared {
            journal,
            entries: Mutex::default(),
            scans: Arc::new(Semaphore::new(limits.scans)),
            queries: Arc::new(Permits::new(limits.queries, limits.queries_of_one)),
            answers: Permits::new(limits.answers, limits.answers_of_one),
            queries_memory: Memory::new(limits.queries_memory),
            merging: Mutex::new(()),
            purging: Mutex::new(()),
            counts: AtomicU64::new(0),
            limits,
        });
        let (changes, queue) = mpsc::channel(QUEUE);
        let for_thread = shared.clone();
        let gone = Ended::read(&shared)?;
        let thread = std::thread::Builder::new()
            .name("graph-commit".to_owned())
            .spawn(move || commit::run(&for_thread, gone, queue))
            .map_err(|error| StorageError::from_io(&error))?;
        // What an earlier process did not get to.
        ended::purge(shared.clone(), Vec::new());
        let committer = Arc::new(Committer {
            changes: Some(changes),
            thread: Some(thread),
        });
        Ok(Self { shared, committer })
    }

    /// How hard a commit is.
    pub fn durability(&self) -> Durability {
        self.shared.journal.durability()
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Makes a change durable and visible, in this order; on an error neither. Changes that wait together
    /// share a commit. A change that was taken is made even when the future is dropped.
    ///
    /// # Errors
    /// When the workspace or the memory has no room for it, and when the journal failed.
    pub async fn write(&self, key: &CollectionKey, batch: Batch) -> Result<(), GraphError> {
        self.write_from(key, batch, WriteKind::Direct)
            .await
            .map(|_| ())
    }

    /// As [`EmbeddedGraph::write`]. `false` if it came too late: the collection has ended, and nothing was done.
    ///
    /// # Errors
    /// As for [`EmbeddedGraph::write`].
    pub async fn write_from(
        &self,
        key: &CollectionKey,
        batch: Batch,
        kind: WriteKind,
    ) -> Result<bool, GraphError> {
        if batch.is_empty() {
            return Ok(true);
        }
        let (done, result) = oneshot::channel();
        let change = Change::Write {
            key: key.clone(),
            batch,
            kind,
            done,
        };
        self.send(change, result).await
    }

    /// Adds quads; see [`EmbeddedGraph::write`].
    ///
    /// # Errors
    /// As for [`EmbeddedGraph::write`].
    pub async fn insert(&self, key: &CollectionKey, quads: Vec<Quad>) -> Result<(), GraphError> {
        self.write(key, Batch::insert(quads)).await
    }

    /// Takes quads out; see [`EmbeddedGraph::write`].
    ///
    /// # Errors
    /// As for [`EmbeddedGraph::write`].
    pub async fn delete(&self, key: &CollectionKey, quads: Vec<Quad>) -> Result<(), GraphError> {
        self.write(key, Batch::delete(quads)).await
    }

    /// Collections of a workspace that hold or held something.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn collections(&self, workspace: &str) -> Result<Vec<String>, GraphError> {
        let workspace = workspace.to_owned();
        let journal = &self.shared.journal;
        Ok(journal
            .read(move |conn| journal::collections(conn, &workspace))
            .await?)
    }

    /// Everything that matches, if it is no more than `limit`, or [`Limits::single_answer`] when there is
    /// no limit.
    ///
    /// # Errors
    /// [`GraphError::TooMany`], and when the dataset cannot be loaded.
    pub async fn find(
        &self,
        key: &CollectionKey,
        pattern: Pattern,
        limit: Option<usize>,
    ) -> Result<Vec<tg_schemas::Triple>, GraphError> {
        let ceiling = self.limits().single_answer;
        let most = limit.unwrap_or(usize::MAX);
        let mut scan = self.scan(key, pattern, Some(most.min(ceiling + 1))).await?;
        let found = scan.next_chunk(usize::MAX).await?;
        if found.len() > ceiling {
            return Err(GraphError::TooMany(ceiling));
        }
        Ok(found)
    }

    /// What matches, chunk by chunk, from one state of the dataset.
    ///
    /// # Errors
    /// When the dataset cannot be loaded.
    pub async fn scan(
        &self,
        key: &CollectionKey,
        pattern: Pattern,
        limit: Option<usize>,
    ) -> Result<Scan, GraphError> {
        let dataset = self.dataset(key).await?;
        Ok(Scan::new(
            dataset.map(|dataset| dataset.scan(&pattern)),
            limit,
            self.shared.scans.clone(),
        ))
    }

    /// Starts a SPARQL query.
    ///
    /// # Errors
    /// [`GraphError::QuerySyntax`], and whatever keeps it from starting.
    pub async fn sparql(
        &self,
        key: &CollectionKey,
        ask: SparqlAsk,
    ) -> Result<SparqlAnswer, GraphError> {
        sparql::start(self, key, ask).await
    }

    /// The dataset, loaded; `None` if there is none.
    pub(crate) async fn dataset(
        &self,
        key: &CollectionKey,
    ) -> Result<Option<Arc<Dataset>>, GraphError> {
        let known = self.shared.entries.lock().get(key).cloned();
        let entry = match known {
            Some(entry) => entry,
            None => match self.find_or_load(key).await? {
                Some(entry) => entry,
                None => return Ok(None),
            },
        };
        Ok(Some(entry.ready().await?))
    }

    async fn find_or_load(&self, key: &CollectionKey) -> Result<Option<Arc<Entry>>, GraphError> {
        let wanted = key.clone();
        let journal = &self.shared.journal;
        let found = journal
            .read(move |conn| journal::find(conn, &wanted))
            .await?;
        let Some(id) = found else {
            return Ok(None);
        };
        let mut entries = self.shared.entries.lock();
        if let Some(entry) = entries.get(key) {
            return Ok(Some(entry.clone()));
        }
        let entry = Arc::new(Entry::loading(id));
        entries.insert(key.clone(), entry.clone());
        load::start(self.shared.clone(), key.clone(), entry.clone());
        Ok(Some(entry))
    }

    pub(crate) async fn permit(
        semaphore: &Arc<Semaphore>,
    ) -> Result<OwnedSemaphorePermit, GraphError> {
        let permit = semaphore.clone().acquire_owned().await;
        permit.map_err(|_| GraphError::Closed)
    }

    pub(crate) async fn send<T>(
        &self,
        change: Change,
        result: oneshot::Receiver<Result<T, GraphError>>,
    ) -> Result<T, GraphError> {
        let changes = self.committer.changes.as_ref().ok_or(GraphError::Closed)?;
        let sent = changes.send(change).await;
        sent.map_err(|_| GraphError::Closed)?;
        result.await.map_err(|_| GraphError::Closed)?
    }
}

impl Shared {
    /// Whether there is memory for one more dataset, or for more in one, beside what is loaded.
    pub(crate) fn room_for(&self, key: &CollectionKey, more: Usage) -> Result<(), GraphError> {
        let limit = self.limits.memory;
        if limit == u64::MAX || more == Usage::default() {
            return Ok(());
        }
        let used = self.entries.lock().values().fold(0_u64, |sum, entry| {
            sum.saturating_add(entry.held().memory())
        });
        let needed = more.memory();
        if used.saturating_add(needed) <= limit {
            return Ok(());
        }
        tracing::warn!(
            collection = key.collection(),
            used,
            needed,
            "no memory for a graph"
        );
        Err(GraphError::GraphMemory {
            needed: needed.div_ceil(1 << 20),
            used: used >> 20,
            limit: limit >> 20,
        })
    }

    /// What datasets hold was counted anew.
    pub(crate) fn recounted(&self) {
        self.counts.fetch_add(1, Ordering::Relaxed);
    }

    /// Lets go of a dataset in memory: the next reader loads it from the journal.
    pub(crate) fn evict(&self, key: &CollectionKey, entry: &Arc<Entry>) {
        let mut entries = self.entries.lock();
        if entries
            .get(key)
            .is_some_and(|known| Arc::ptr_eq(known, entry))
        {
            entries.remove(key);
        }
    }
}

#[cfg(test)]
mod tests;
