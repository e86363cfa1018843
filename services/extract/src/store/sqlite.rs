//! The ledger in one SQLite file. All SQL of this crate is here.

use std::path::Path;

use async_trait::async_trait;
use tg_storage::rusqlite::{OptionalExtension, params};
use tg_storage::{Database, Durability, StorageError};

use super::{Kept, MAX_REPLIES, ReplyLedger};

const MIGRATIONS: &[&str] = &["
CREATE TABLE reply (
  number INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  workspace TEXT NOT NULL,
  reply TEXT NOT NULL,
  dropped INTEGER NOT NULL,
  model TEXT NOT NULL,
  asked_at TEXT NOT NULL
);
CREATE INDEX reply_by_workspace ON reply (workspace);
CREATE TABLE told (
  number INTEGER PRIMARY KEY,
  workspace TEXT NOT NULL,
  place TEXT NOT NULL,
  version TEXT NOT NULL,
  UNIQUE (workspace, place)
);
"];

/// Rows removed at once.
const PURGE: i64 = 256;
/// Every so many replies the bound is looked at.
const PURGE_EVERY: i64 = 256;

/// The ledger of one file. Clones share it.
#[derive(Debug, Clone)]
pub struct SqliteLedger {
    db: Database,
}

impl SqliteLedger {
    /// Opens or creates the file and takes its lock. Blocks.
    ///
    /// # Errors
    /// [`StorageError::InUse`] while another process has it; otherwise what is wrong with the file.
    pub fn open(file: &Path, durability: Durability) -> Result<Self, StorageError> {
        let db = Database::open(file, MIGRATIONS, durability)?;
        Ok(Self { db })
    }

    /// A ledger that ends with the process.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn in_memory() -> Result<Self, StorageError> {
        let db = Database::in_memory(MIGRATIONS)?;
        Ok(Self { db })
    }

    /// The file below.
    pub(crate) fn file(&self) -> &Database {
        &self.db
    }

    /// Workspaces that something is kept for.
    pub(super) async fn known_workspaces(&self) -> Result<Vec<String>, StorageError> {
        self.db
            .read(|conn| {
                let mut known = conn.prepare_cached(
                    "SELECT DISTINCT workspace FROM reply UNION SELECT DISTINCT workspace FROM told",
                )?;
                let rows = known.query_map([], |row| row.get(0))?;
                Ok(rows.collect::<Result<_, _>>()?)
            })
            .await
    }

    /// Purges some of what is kept for a workspace. `false` when nothing is left.
    pub(super) async fn purge_some(&self, workspace: String) -> Result<bool, StorageError> {
        self.db
            .write(move |tx| {
                let gone = tx
                    .prepare_cached(
                        "DELETE FROM reply WHERE number IN
                         (SELECT number FROM reply WHERE workspace = ?1 LIMIT 1000)",
                    )?
                    .execute([&workspace])?;
                tx.prepare_cached("DELETE FROM told WHERE workspace = ?1")?
                    .execute([&workspace])?;
                Ok(gone > 0)
            })
            .await
    }
}

#[async_trait]
impl ReplyLedger for SqliteLedger {
    async fn find(&self, key: String) -> Result<Option<Kept>, StorageError> {
        self.db
            .read(move |conn| {
                let kept = conn
                    .prepare_cached(
                        "SELECT reply, dropped, model, asked_at FROM reply WHERE key = ?1",
                    )?
                    .query_row([key], |row| {
                        Ok(Kept {
                            reply: row.get(0)?,
                            dropped: row.get(1)?,
                            model: row.get(2)?,
                            asked_at: row.get(3)?,
                        })
                    })
                    .optional()?;
                Ok(kept)
            })
            .await
    }

    async fn keep(&self, key: String, workspace: String, kept: Kept) -> Result<(), StorageError> {
        self.db
            .write(move |tx| {
                let new = tx
                    .prepare_cached(
                        "INSERT INTO reply (key, workspace, reply, dropped, model, asked_at)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
                    )?
                    .execute(params![
                        key,
                        workspace,
                        kept.reply,
                        kept.dropped,
                        kept.model,
                        kept.asked_at
                    ])?;
                let number = tx.last_insert_rowid();
                if new > 0 && number % PURGE_EVERY == 0 {
                    tx.prepare_cached(
                        "DELETE FROM reply WHERE number IN
                         (SELECT number FROM reply WHERE number <= ?1 ORDER BY number LIMIT ?2)",
                    )?
                    .execute([number - MAX_REPLIES, PURGE])?;
                }
                Ok(())
            })
            .await
    }

    async fn was_told(
        &self,
        workspace: String,
        place: String,
        version: String,
    ) -> Result<bool, StorageError> {
        self.db
            .read(move |conn| {
                let told: Option<String> = conn
                    .prepare_cached("SELECT version FROM told WHERE workspace = ?1 AND place = ?2")?
                    .query_row([workspace, place], |row| row.get(0))
                    .optional()?;
                Ok(told == Some(version))
            })
            .await
    }

    async fn tell(
        &self,
        workspace: String,
        place: String,
        version: String,
    ) -> Result<(), StorageError> {
        self.db
            .write(move |tx| {
                tx.prepare_cached(
                    "INSERT INTO told (workspace, place, version) VALUES (?1, ?2, ?3)
                     ON CONFLICT (workspace, place) DO UPDATE SET version = excluded.version",
                )?
                .execute([workspace, place, version])?;
                Ok(())
            })
            .await
    }
}
