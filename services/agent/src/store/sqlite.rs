//! The ledger in one SQLite file. Here is each transaction; its statements are in the files below, by table.

mod detached;
mod heads;
mod runs;
mod said;
mod schema;
mod steps;

use std::path::Path;

use async_trait::async_trait;
use tg_collections::KnownConfig;
use tg_provenance::Ended;
use tg_schemas::msg::DetachedRun;
use tg_storage::{Database, Durability, StorageError};

use self::schema::MIGRATIONS;
use super::{
    Asked, Began, IsOver, LastHeads, LedgerStore, Piece, RunEnd, RunKey, SignedHead, StepRow,
};
use crate::engine::decision::{Decision, Ending, Observation};

/// The ledger's file.
#[derive(Debug, Clone)]
pub(super) struct SqliteLedger {
    db: Database,
}

impl SqliteLedger {
    /// Opens or creates the file and takes its lock. Blocks.
    pub(super) fn open(file: &Path, durability: Durability) -> Result<Self, StorageError> {
        Ok(Self {
            db: Database::open(file, MIGRATIONS, durability)?,
        })
    }

    /// A ledger that ends with the process.
    pub(super) fn in_memory() -> Result<Self, StorageError> {
        Ok(Self {
            db: Database::in_memory(MIGRATIONS)?,
        })
    }
}

#[async_trait]
impl LedgerStore for SqliteLedger {
    async fn begin(
        &self,
        asked: Asked,
        new: Began,
        now_ms: i64,
    ) -> Result<Option<Began>, StorageError> {
        let write = self
            .db
            .write(move |tx| runs::begin(tx, &asked, new, now_ms));
        write.await
    }

    async fn detached(
        &self,
        user: &str,
        after: &str,
        most: usize,
        now_ms: i64,
    ) -> Result<Vec<DetachedRun>, StorageError> {
        let (user, after) = (user.to_owned(), after.to_owned());
        let read = self
            .db
            .read(move |conn| detached::list(conn, &user, &after, most, now_ms));
        read.await
    }

    async fn cancel(&self, user: &str, question: &str, now_ms: i64) -> Result<bool, StorageError> {
        let (user, question) = (user.to_owned(), question.to_owned());
        let write = self
            .db
            .write(move |tx| detached::cancel(tx, &user, &question, now_ms));
        write.await
    }

    async fn is_cancelled(&self, run: &str) -> Result<bool, StorageError> {
        let run = run.to_owned();
        let read = self.db.read(move |conn| detached::is_cancelled(conn, &run));
        read.await
    }

    async fn is_open(&self, question: String) -> Result<bool, StorageError> {
        let read = self.db.read(move |conn| runs::is_open(conn, &question));
        read.await
    }

    async fn load(&self, run: String, step: u32) -> Result<StepRow, StorageError> {
        let read = self.db.read(move |conn| steps::load(conn, &run, step));
        read.await
    }

    async fn say(
        &self,
        run: &RunKey,
        step: u32,
        seq: u64,
        pieces: Vec<Piece>,
        now_ms: i64,
    ) -> Result<bool, StorageError> {
        let RunKey { run, is_over } = run.clone();
        let write = self.db.write(move |tx| {
            if is_over.holds() {
                return Ok(false);
            }
            said::say(tx, &run, step, seq, &pieces, now_ms)?;
            Ok(true)
        });
        write.await
    }

    async fn heard(
        &self,
        run: &str,
        step: u32,
        from: u64,
        until: u64,
    ) -> Result<Option<Vec<Piece>>, StorageError> {
        let run = run.to_owned();
        let write = self
            .db
            .write(move |tx| said::heard(tx, &run, step, from, until));
        write.await
    }

    async fn decide(
        &self,
        run: &RunKey,
        step: u32,
        decision: &Decision,
        now_ms: i64,
    ) -> Result<bool, StorageError> {
        let RunKey { run, is_over } = run.clone();
        let text = steps::write_json(decision)?;
        let write = self.db.write(move |tx| {
            if is_over.holds() {
                return Ok(false);
            }
            steps::decide(tx, &run, step, &text, now_ms)?;
            said::forget(tx, &run, step)?;
            Ok(true)
        });
        write.await
    }

    async fn observe(
        &self,
        run: &str,
        step: u32,
        observation: &Observation,
    ) -> Result<(), StorageError> {
        let (run, text) = (run.to_owned(), steps::write_json(observation)?);
        let write = self
            .db
            .write(move |tx| steps::observe(tx, &run, step, &text));
        write.await
    }

    async fn end(
        &self,
        run: &RunKey,
        step: u32,
        ending: &Ending,
        now_ms: i64,
    ) -> Result<bool, StorageError> {
        let RunKey { run, is_over } = run.clone();
        let text = steps::write_json(ending)?;
        let write = self.db.write(move |tx| {
            if is_over.holds() {
                return Ok(false);
            }
            steps::end(tx, &run, step, &text, now_ms)?;
            Ok(true)
        });
        write.await
    }

    async fn finish_step(&self, run: &str, step: u32) -> Result<(), StorageError> {
        let run = run.to_owned();
        self.db.write(move |tx| steps::finish(tx, &run, step)).await
    }

    async fn finish_run(
        &self,
        run: &RunKey,
        step: u32,
        end: &RunEnd,
        now_ms: i64,
    ) -> Result<(), StorageError> {
        let (RunKey { run, is_over }, end) = (run.clone(), end.clone());
        let write = self.db.write(move |tx| {
            steps::finish_run(tx, &run, step)?;
            match end.ended.hash.is_empty() || is_over.holds() {
                true => Ok(()),
                false => heads::note(tx, &end, now_ms),
            }
        });
        write.await
    }

    async fn ended(
        &self,
        workspace: &str,
        day: &str,
        after: i64,
        most: usize,
    ) -> Result<Vec<Ended>, StorageError> {
        let (workspace, day) = (workspace.to_owned(), day.to_owned());
        let read = self
            .db
            .read(move |conn| heads::ended(conn, &workspace, &day, after, most));
        read.await
    }

    async fn heads(&self, workspace: &str, day: &str) -> Result<LastHeads, StorageError> {
        let (workspace, day) = (workspace.to_owned(), day.to_owned());
        let read = self
            .db
            .read(move |conn| heads::last(conn, &workspace, &day));
        read.await
    }

    async fn keep_head(
        &self,
        workspace: &str,
        is_over: &IsOver,
        head: &SignedHead,
    ) -> Result<bool, StorageError> {
        let (workspace, is_over, head) = (workspace.to_owned(), is_over.clone(), head.clone());
        let write = self.db.write(move |tx| match is_over.holds() {
            true => Ok(false),
            false => heads::keep(tx, &workspace, &head),
        });
        write.await
    }

    async fn head_key(&self, new: Vec<u8>) -> Result<Vec<u8>, StorageError> {
        self.db.write(move |tx| heads::key(tx, &new)).await
    }

    async fn workspaces(&self) -> Result<Vec<String>, StorageError> {
        self.db.read(runs::workspaces).await
    }

    async fn purge_some(&self, workspace: &str) -> Result<bool, StorageError> {
        let workspace = workspace.to_owned();
        let write = self.db.write(move |tx| runs::purge_some(tx, &workspace));
        write.await
    }

    fn known_config(&self) -> &dyn KnownConfig {
        &self.db
    }
}
