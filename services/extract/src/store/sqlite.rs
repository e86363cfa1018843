//! The ledger in one SQLite file. All SQL of this crate is here and below.

mod quarantine;

use std::path::Path;

use async_trait::async_trait;
use tg_storage::rusqlite::{OptionalExtension, Transaction, params};
use tg_storage::{Database, Durability, OneWorkspace, StorageError, query_rows};

use super::{CachedReply, ReplyLedger};

const MIGRATIONS: &[&str] = &[
    "
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
",
    "
CREATE TABLE held (workspace TEXT PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
",
    "
CREATE TABLE violation (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  workspace TEXT NOT NULL,
  flow TEXT NOT NULL,
  collection TEXT NOT NULL,
  generation INTEGER NOT NULL,
  document TEXT NOT NULL,
  chunk TEXT NOT NULL,
  model TEXT NOT NULL,
  prompt_version TEXT NOT NULL,
  asked_at TEXT NOT NULL,
  statement TEXT NOT NULL,
  reason TEXT NOT NULL,
  bytes INTEGER NOT NULL
) STRICT;
CREATE INDEX violation_by_workspace ON violation (workspace, number, bytes);
CREATE INDEX violation_by_chunk ON violation (workspace, chunk);
CREATE TABLE violations_dropped (workspace TEXT PRIMARY KEY, count INTEGER NOT NULL) STRICT, WITHOUT ROWID;
",
];

/// How a backup keeps one workspace of the ledger.
pub const ONE_WORKSPACE: OneWorkspace = OneWorkspace::new(
    MIGRATIONS,
    &[
        "DELETE FROM reply WHERE workspace <> ?1",
        "DELETE FROM told WHERE workspace <> ?1",
        "DELETE FROM held WHERE workspace <> ?1",
        "DELETE FROM violation WHERE workspace <> ?1",
        "DELETE FROM violations_dropped WHERE workspace <> ?1",
    ],
);

/// Bytes of a row, with its key, which has 64.
const SIZE: &str = "octet_length(reply) + octet_length(model) + 256";

/// The ledger of one file. Clones share it.
#[derive(Debug, Clone)]
pub struct SqliteLedger {
    db: Database,
    /// Bytes that are kept of a workspace.
    most: i64,
    /// Statements that fit no ontology, and bytes of them, that are kept of a workspace.
    quarantine: (i64, i64),
}

impl SqliteLedger {
    /// Opens or creates the file and takes its lock; it keeps so many bytes of each workspace. Blocks.
    ///
    /// # Errors
    /// [`StorageError::InUse`] while another process has it; otherwise what is wrong with the file.
    pub fn open(file: &Path, durability: Durability, most: u64) -> Result<Self, StorageError> {
        Ok(Self::of(
            Database::open(file, MIGRATIONS, durability)?,
            most,
        ))
    }

    /// A ledger that ends with the process.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn in_memory(most: u64) -> Result<Self, StorageError> {
        Ok(Self::of(Database::in_memory(MIGRATIONS)?, most))
    }

    fn of(db: Database, most: u64) -> Self {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        Self {
            db,
            most,
            quarantine: (i64::MAX, i64::MAX),
        }
    }

    /// The same, which keeps so many statements that fit no ontology of a workspace, and so many bytes of them.
    pub fn keeping(self, statements: u32, bytes: u64) -> Self {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        Self {
            quarantine: (i64::from(statements), bytes),
            ..self
        }
    }

    /// The file below.
    pub(crate) fn file(&self) -> &Database {
        &self.db
    }

    /// Workspaces that something is kept for.
    pub(super) async fn known_workspaces(&self) -> Result<Vec<String>, StorageError> {
        self.db
            .read(|conn| {
                let sql = "SELECT DISTINCT workspace FROM reply UNION SELECT DISTINCT workspace FROM told
                     UNION SELECT DISTINCT workspace FROM violation UNION SELECT workspace FROM violations_dropped";
                query_rows(conn, sql, [], |row| row.get(0))
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
                for table in ["told", "held", "violation", "violations_dropped"] {
                    let sql = format!("DELETE FROM {table} WHERE workspace = ?1");
                    tx.prepare_cached(&sql)?.execute([&workspace])?;
                }
                Ok(gone > 0)
            })
            .await
    }
}

/// Bytes that are kept of a workspace. What the release before kept is measured once.
fn held(tx: &Transaction<'_>, workspace: &str) -> Result<i64, StorageError> {
    let known: Option<i64> = tx
        .prepare_cached("SELECT bytes FROM held WHERE workspace = ?1")?
        .query_row([workspace], |row| row.get(0))
        .optional()?;
    if let Some(bytes) = known {
        return Ok(bytes);
    }
    let sql = format!("SELECT coalesce(sum({SIZE}), 0) FROM reply WHERE workspace = ?1");
    let bytes: i64 = tx.query_row(&sql, [workspace], |row| row.get(0))?;
    Ok(bytes)
}

/// A reply was added last: where the workspace has more than it may then, its oldest ones go, and never that one.
fn evict(tx: &Transaction<'_>, workspace: &str, held: i64, most: i64) -> Result<(), StorageError> {
    let number = tx.last_insert_rowid();
    let sql = format!("SELECT {SIZE} FROM reply WHERE number = ?1");
    let added: i64 = tx
        .prepare_cached(&sql)?
        .query_row([number], |row| row.get(0))?;
    let mut bytes = held + added;
    let mut last = 0;
    if bytes > most {
        let sql = format!(
            "SELECT number, {SIZE} FROM reply WHERE workspace = ?1 AND number < ?2 ORDER BY number"
        );
        let mut oldest = tx.prepare_cached(&sql)?;
        let mut rows = oldest.query(params![workspace, number])?;
        while bytes > most
            && let Some(row) = rows.next()?
        {
            last = row.get(0)?;
            bytes -= row.get::<_, i64>(1)?;
        }
    }
    if last > 0 {
        tx.prepare_cached("DELETE FROM reply WHERE workspace = ?1 AND number <= ?2")?
            .execute(params![workspace, last])?;
    }
    let sql = "INSERT INTO held VALUES (?1, ?2) ON CONFLICT (workspace) DO UPDATE SET bytes = excluded.bytes";
    tx.prepare_cached(sql)?.execute(params![workspace, bytes])?;
    Ok(())
}

#[async_trait]
impl ReplyLedger for SqliteLedger {
    async fn find(&self, key: String) -> Result<Option<CachedReply>, StorageError> {
        self.db
            .read(move |conn| {
                let kept = conn
                    .prepare_cached(
                        "SELECT reply, dropped, model, asked_at FROM reply WHERE key = ?1",
                    )?
                    .query_row([key], |row| {
                        Ok(CachedReply {
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

    async fn keep(
        &self,
        key: String,
        workspace: String,
        kept: CachedReply,
    ) -> Result<(), StorageError> {
        let most = self.most;
        self.db
            .write(move |tx| {
                let held = held(tx, &workspace)?;
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
                match new {
                    0 => Ok(()),
                    _ => evict(tx, &workspace, held, most),
                }
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
