//! Replies that were paid for, by everything that determined them. A repeat reads them here, so that it says
//! the same and costs nothing. All SQL of this crate is here.

use std::path::Path;

use tg_storage::rusqlite::{OptionalExtension, params};
use tg_storage::{Database, Durability, StorageError};

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

/// Replies that are kept; then the oldest go.
const MOST: i64 = 4_000_000;
/// Rows removed at once.
const PURGE: i64 = 256;
/// Every so many replies the bound is looked at.
const PURGE_EVERY: i64 = 256;

/// A reply as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Items of the reply, a JSON array.
    pub reply: String,
    /// Lines of the reply that were unusable from the start.
    pub dropped: i64,
    /// The model that replied; empty if it did not say.
    pub model: String,
    /// When it was asked: UTC, ISO 8601 with `Z`.
    pub asked_at: String,
}

/// The ledger.
#[derive(Debug, Clone)]
pub struct Ledger {
    db: Database,
}

impl Ledger {
    /// Opens or creates the ledger. Blocks.
    pub fn open(file: &Path, durability: Durability) -> Result<Self, StorageError> {
        let db = Database::open(file, MIGRATIONS, durability)?;
        Ok(Self { db })
    }

    /// A ledger that ends with the process.
    pub fn in_memory() -> Result<Self, StorageError> {
        let db = Database::in_memory(MIGRATIONS)?;
        Ok(Self { db })
    }

    /// The reply kept under a key.
    pub async fn find(&self, key: String) -> Result<Option<Kept>, StorageError> {
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

    /// Keeps a reply; durable when `Ok`. The first one under a key stays.
    pub async fn keep(
        &self,
        key: String,
        workspace: String,
        kept: Kept,
    ) -> Result<(), StorageError> {
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
                    .execute([number - MOST, PURGE])?;
                }
                Ok(())
            })
            .await
    }

    /// Whether a place was told this version already.
    pub async fn was_told(
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

    /// Notes that a place was told a version.
    pub async fn tell(
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

    /// The file below.
    pub(crate) fn file(&self) -> &Database {
        &self.db
    }

    /// Workspaces that something is kept for.
    pub async fn workspaces(&self) -> Result<Vec<String>, StorageError> {
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

    /// Forgets some of what is kept for a workspace. `false` when nothing is left.
    pub async fn forget_some(&self, workspace: String) -> Result<bool, StorageError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(reply: &str) -> Kept {
        Kept {
            reply: reply.to_owned(),
            dropped: 1,
            model: "m".to_owned(),
            asked_at: "2031-02-03T04:05:06Z".to_owned(),
        }
    }

    #[tokio::test]
    async fn the_first_reply_stays_until_its_workspace_goes() {
        let ledger = Ledger::in_memory().unwrap();
        for (key, workspace, reply) in [("k", "a", "[1]"), ("k", "a", "[2]"), ("l", "b", "[3]")] {
            let kept = kept(reply);
            ledger
                .keep(key.into(), workspace.into(), kept)
                .await
                .unwrap();
        }
        let find = async |key: &str| ledger.find(key.to_owned()).await.unwrap();
        assert_eq!(find("k").await, Some(kept("[1]")));
        assert_eq!(find("none").await, None);
        assert_eq!(ledger.workspaces().await.unwrap(), ["a", "b"]);
        while ledger.forget_some("a".into()).await.unwrap() {}
        assert_eq!(find("k").await, None);
        assert_eq!(find("l").await, Some(kept("[3]")));
    }

    #[tokio::test]
    async fn a_place_knows_one_version() {
        let ledger = Ledger::in_memory().unwrap();
        let told = async |version: &str| {
            let told = ledger
                .was_told("w".into(), "f/c".into(), version.into())
                .await;
            told.unwrap()
        };
        assert!(!told("1").await);
        for version in ["1", "2"] {
            ledger
                .tell("w".into(), "f/c".into(), version.into())
                .await
                .unwrap();
            assert!(told(version).await);
        }
        assert!(!told("1").await);
    }
}
