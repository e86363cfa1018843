//! The keyword index of all collections. A change is durable and visible when it is reported.

use std::path::Path;

use futures::executor::block_on;
use tg_storage::{Database, Durability};
use tokio::sync::oneshot;

use super::{query, store};
use crate::commits::Commits;
use crate::error::VectorError;
use tg_collections::{CollectionKey, WriteKind};

/// Most chunks a search returns.
const MAX_LIMIT: usize = 10_000;

/// A chunk to index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkText {
    /// Its id.
    pub id: String,
    /// Its text.
    pub text: String,
}

/// A chunk that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct KeywordHit {
    /// Its id.
    pub id: String,
    /// BM25; higher is better.
    pub score: f64,
}

type Reply = oneshot::Sender<Result<usize, VectorError>>;

enum Job {
    Put(CollectionKey, WriteKind, ChunkText),
    Retract(CollectionKey, Vec<String>),
    Drop(CollectionKey),
    DropWorkspace(String),
}

/// The handle.
pub struct Keywords {
    db: Database,
    commits: Commits<(Job, Reply)>,
}

impl Keywords {
    /// Opens or creates the file and takes its lock. Blocks: call it at start-up.
    pub fn open(path: &Path, durability: Durability) -> Result<Self, VectorError> {
        Self::start(store::open(path, durability)?)
    }

    /// An index without a file.
    pub fn in_memory() -> Result<Self, VectorError> {
        Self::start(store::in_memory()?)
    }

    fn start(db: Database) -> Result<Self, VectorError> {
        let (writing, reclaiming) = (db.clone(), db.clone());
        let commits = Commits::start(
            "keywords-commit",
            move |group| commit(&writing, group),
            move || block_on(reclaiming.write(store::reap)).unwrap_or(false),
        )?;
        Ok(Self { db, commits })
    }

    /// Indexes a chunk; one of the same id is replaced. 0 when it was there already, just so.
    pub async fn put(
        &self,
        key: &CollectionKey,
        write_kind: WriteKind,
        chunk: ChunkText,
    ) -> Result<usize, VectorError> {
        self.change(Job::Put(key.clone(), write_kind, chunk)).await
    }

    /// Forgets chunks; how many were there.
    pub async fn retract(
        &self,
        key: &CollectionKey,
        chunks: Vec<String>,
    ) -> Result<usize, VectorError> {
        self.change(Job::Retract(key.clone(), chunks)).await
    }

    /// Ends all generations of a collection up to the key's; how many chunks they held.
    pub async fn drop_collection(&self, key: &CollectionKey) -> Result<usize, VectorError> {
        self.change(Job::Drop(key.clone())).await
    }

    /// The file below.
    pub(crate) fn db(&self) -> &Database {
        &self.db
    }

    /// Ends everything of a workspace.
    pub async fn drop_workspace(&self, workspace: &str) -> Result<usize, VectorError> {
        self.change(Job::DropWorkspace(workspace.to_owned())).await
    }

    async fn change(&self, job: Job) -> Result<usize, VectorError> {
        let (reply, done) = oneshot::channel();
        self.commits.push((job, reply)).await?;
        done.await.map_err(|_| VectorError::Closed)?
    }

    /// The best chunks for a question, best first; none for a question without words.
    pub async fn search(
        &self,
        key: &CollectionKey,
        question: &str,
        limit: usize,
    ) -> Result<Vec<KeywordHit>, VectorError> {
        let Some(expression) = query::expression(question) else {
            return Ok(Vec::new());
        };
        let (key, limit) = (key.clone(), limit.min(MAX_LIMIT));
        let found = self
            .db
            .read(move |conn| store::search(conn, &key, &expression, limit));
        Ok(found.await?)
    }

    /// Chunks of a collection.
    pub async fn count(&self, key: &CollectionKey) -> Result<usize, VectorError> {
        let key = key.clone();
        Ok(self.db.read(move |conn| store::count(conn, &key)).await?)
    }
}

/// One transaction for jobs that waited together: the full-text table then writes one segment for all.
fn commit(db: &Database, group: Vec<(Job, Reply)>) {
    let (jobs, replies): (Vec<Job>, Vec<_>) = group.into_iter().unzip();
    let done = block_on(db.write(move |tx| {
        let run = |job| match job {
            Job::Put(key, write_kind, chunk) => {
                store::put(tx, &key, write_kind, &chunk).map(usize::from)
            }
            Job::Retract(key, chunks) => store::retract(tx, &key, &chunks),
            Job::Drop(key) => store::drop_collection(tx, &key),
            Job::DropWorkspace(workspace) => store::drop_workspace(tx, &workspace),
        };
        jobs.into_iter().map(run).collect::<Result<Vec<_>, _>>()
    }));
    match done {
        Ok(counts) => {
            for (count, reply) in counts.into_iter().zip(replies) {
                // Nobody may be waiting any more.
                let _ = reply.send(Ok(count));
            }
        }
        Err(error) => {
            tracing::warn!(%error, changes = replies.len(), "changes of the keyword index failed");
            for reply in replies {
                let _ = reply.send(Err(error.clone().into()));
            }
        }
    }
}

#[cfg(test)]
mod tests;
