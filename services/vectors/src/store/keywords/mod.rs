//! The words of chunks in SQLite, ranked by BM25. One file; each collection has a full-text table of its own. The texts
//! themselves are not kept. A change is durable and visible when it is reported.

mod lifecycle;
mod schema;

use std::path::Path;

use async_trait::async_trait;
use futures::executor::block_on;
use tg_storage::{Database, Durability, GroupBounds, GroupCommitter, StorageError};
use tokio::sync::oneshot;

use super::{ChunkText, KeywordHit, KeywordStore, MAX_LIMIT};
use crate::engine::words;
use crate::error::VectorError;
pub use schema::ONE_WORKSPACE;
use tg_collections::{CollectionKey, Quota, WriteKind};

type Reply = oneshot::Sender<Result<usize, VectorError>>;

enum Job {
    Put(CollectionKey, WriteKind, ChunkText),
    Retract(CollectionKey, Vec<String>),
    Drop(CollectionKey),
    DropWorkspace(String),
}

/// The index of one file. Dropped, it commits what waits and closes the file.
pub struct SqliteKeywords {
    db: Database,
    commits: GroupCommitter<(Job, Reply)>,
}

impl SqliteKeywords {
    /// Opens or creates the file and takes its lock. Blocks: call it at start-up.
    ///
    /// # Errors
    /// [`VectorError::Storage`] while another process has it, and when the file cannot be used.
    pub fn open(path: &Path, durability: Durability, quota: Quota) -> Result<Self, VectorError> {
        Self::start(schema::open(path, durability)?, quota)
    }

    /// An index without a file.
    ///
    /// # Errors
    /// When there is no memory or no thread for it.
    pub fn in_memory(quota: Quota) -> Result<Self, VectorError> {
        Self::start(schema::in_memory()?, quota)
    }

    fn start(db: Database, quota: Quota) -> Result<Self, VectorError> {
        let (writing, purging) = (db.clone(), db.clone());
        let commits = GroupCommitter::start_with_chores(
            "keywords-commit",
            GroupBounds::default(),
            move |group| commit(&writing, quota, std::mem::take(group)),
            move || block_on(purging.write(schema::purge_some)).unwrap_or(false),
        )?;
        Ok(Self { db, commits })
    }

    async fn change(&self, job: Job) -> Result<usize, VectorError> {
        let (reply, done) = oneshot::channel();
        self.commits.push((job, reply)).await?;
        done.await.map_err(|_| VectorError::Closed)?
    }
}

#[async_trait]
impl KeywordStore for SqliteKeywords {
    async fn put(
        &self,
        key: &CollectionKey,
        kind: WriteKind,
        chunk: ChunkText,
    ) -> Result<usize, VectorError> {
        self.change(Job::Put(key.clone(), kind, chunk)).await
    }

    async fn search(
        &self,
        key: &CollectionKey,
        question: &str,
        limit: usize,
    ) -> Result<Vec<KeywordHit>, VectorError> {
        let Some(expression) = words::expression(question) else {
            return Ok(Vec::new());
        };
        let (key, limit) = (key.clone(), limit.min(MAX_LIMIT));
        let found = self
            .db
            .read(move |conn| schema::search(conn, &key, &expression, limit));
        Ok(found.await?)
    }

    async fn count(&self, key: &CollectionKey) -> Result<usize, VectorError> {
        let key = key.clone();
        Ok(self.db.read(move |conn| schema::count(conn, &key)).await?)
    }
}

/// One transaction for jobs that waited together: the full-text table then writes one segment for all.
fn commit(db: &Database, quota: Quota, group: Vec<(Job, Reply)>) {
    let (jobs, replies): (Vec<Job>, Vec<_>) = group.into_iter().unzip();
    let done = db.write_here(move |tx| {
        let run = |job| match job {
            Job::Put(key, write_kind, chunk) => {
                let put = schema::put(tx, quota, &key, write_kind, &chunk);
                put.map(|put| put.map(usize::from))
            }
            Job::Retract(key, chunks) => schema::retract(tx, &key, &chunks).map(Ok),
            Job::Drop(key) => schema::drop_collection(tx, &key).map(Ok),
            Job::DropWorkspace(workspace) => schema::drop_workspace(tx, &workspace).map(Ok),
        };
        jobs.into_iter().map(run).collect::<Result<Vec<_>, _>>()
    });
    match done {
        Ok(counts) => {
            for (count, reply) in counts.into_iter().zip(replies) {
                // Nobody may be waiting any more.
                let _ = reply.send(count);
            }
        }
        Err(error) => {
            // The store itself logs a full disk.
            if error != StorageError::Full {
                tracing::warn!(%error, changes = replies.len(), "changes of the keyword index failed");
            }
            for reply in replies {
                let _ = reply.send(Err(error.clone().into()));
            }
        }
    }
}
