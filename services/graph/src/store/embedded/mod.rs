//! Graphs in this process: datasets in memory, their journal, and who may see what when.
//!
//! One engine owns one journal file. A change is first committed to the journal, then applied, then
//! reported; readers see whole changes only. A dataset is loaded when it is first read; writing to one
//! that is not loaded only extends its journal.

mod accounting;
pub mod batch;
mod bounds;
mod by_hand;
mod change;
mod changes;
mod commit;
mod dataset;
mod ended;
mod entry;
mod evaluated;
pub mod exchange;
mod handle;
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
mod shared;
mod sight;
mod sparql;

use std::path::Path;
use std::sync::Arc;

use oxigraph::model::Quad;
use tg_collections::{CollectionKey, WriteKind};
use tg_schemas::msg::UserContext;
use tg_storage::{Database, Durability, GroupBounds, GroupCommitter, survived};
use tokio::sync::oneshot;

use self::batch::Batch;
use self::change::Change;
use self::commit::Commits;
use self::ended::Ended;
pub use self::handle::EmbeddedGraph;
pub use self::journal::ONE_WORKSPACE;
use self::scan::Scan;
use self::shared::Shared;
use super::{SparqlAnswer, SparqlAsk};
use crate::engine::pattern::Pattern;
use crate::error::GraphError;
use crate::options::Limits;

/// Changes that may wait for the commit thread, and those that share a commit: each may hold thousands of quads.
const CHANGES: GroupBounds = GroupBounds {
    queue: 256,
    group: 128,
};

impl EmbeddedGraph {
    /// Opens the journal; loads nothing.
    ///
    /// # Errors
    /// [`tg_storage::StorageError::InUse`] while another process owns it; otherwise what is wrong with the file.
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
        let shared = Arc::new(Shared::new(journal, limits));
        let mut commits = Commits::new(shared.clone(), Ended::read(&shared)?);
        let committer = GroupCommitter::start("graph-commit", CHANGES, move |group| {
            if !survived(|| commits.group(group)) {
                commits.forget();
            }
        })?;
        // What an earlier process did not get to.
        ended::purge(shared.clone(), Vec::new());
        Ok(Self::over(shared, committer))
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

    /// As [`EmbeddedGraph::find_for`], for nobody of whom anything is known.
    ///
    /// # Errors
    /// As for [`EmbeddedGraph::find_for`].
    pub async fn find(
        &self,
        key: &CollectionKey,
        pattern: Pattern,
        limit: Option<usize>,
    ) -> Result<Vec<tg_schemas::Triple>, GraphError> {
        self.find_for(key, None, pattern, limit).await
    }

    /// Everything that matches and that the user may see, if it is no more than `limit`, or [`Limits::single_answer`] when
    /// there is no limit.
    ///
    /// # Errors
    /// [`GraphError::TooMany`], [`GraphError::TooMuch`], and when the dataset cannot be loaded or has policies that cannot
    /// be applied.
    pub async fn find_for(
        &self,
        key: &CollectionKey,
        user: Option<&UserContext>,
        pattern: Pattern,
        limit: Option<usize>,
    ) -> Result<Vec<tg_schemas::Triple>, GraphError> {
        let (ceiling, bytes) = (
            self.limits().single_answer,
            self.limits().single_answer_bytes,
        );
        let most = limit.unwrap_or(usize::MAX);
        let most = Some(most.min(ceiling + 1));
        let mut scan = self.scan_for(key, user, pattern, most).await?;
        let mut found = Vec::new();
        loop {
            let more = scan.next_chunk(usize::MAX).await?;
            if more.is_empty() {
                return Ok(found);
            }
            found.extend(more);
            if found.len() > ceiling {
                return Err(GraphError::TooMany(ceiling));
            }
            if scan.bytes() > bytes {
                return Err(GraphError::TooMuch(bytes >> 20));
            }
        }
    }

    /// What matches, chunk by chunk, from one state of the dataset.
    ///
    /// # Errors
    /// When the dataset cannot be loaded or has policies that cannot be applied.
    pub async fn scan_for(
        &self,
        key: &CollectionKey,
        user: Option<&UserContext>,
        pattern: Pattern,
        limit: Option<usize>,
    ) -> Result<Scan, GraphError> {
        let dataset = self.seen(key, user).await?;
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
}

#[cfg(test)]
pub(super) mod tests;
