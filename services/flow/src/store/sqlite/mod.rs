//! The flow service's tables in one SQLite file. All SQL of this crate is below this module.

mod dead_letter;
mod room;

use std::path::Path;

use async_trait::async_trait;
use tg_collections::KnownConfig;
use tg_schemas::{Error, WorkspaceKey};
use tg_storage::rusqlite::{OptionalExtension, params};
use tg_storage::{ConfigKnown, Database, Durability, OneWorkspace, StorageError};

use super::{Phase, Progress, StopStore};
use crate::engine::receipt::Counts;
use crate::options::Quotas;

/// Scripts in the order they are run; only ever appended.
const MIGRATIONS: &[&str] = &["
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO counter VALUES ('epoch', 0);
CREATE TABLE stop (
    workspace TEXT NOT NULL, flow TEXT NOT NULL,
    epoch INTEGER NOT NULL, phase TEXT NOT NULL, started INTEGER NOT NULL, counts TEXT NOT NULL,
    PRIMARY KEY (workspace, flow)
) WITHOUT ROWID;
CREATE TABLE put_aside (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace TEXT NOT NULL, flow TEXT NOT NULL, topic TEXT NOT NULL, subscription TEXT NOT NULL,
    reason TEXT NOT NULL, detail TEXT NOT NULL,
    due INTEGER NOT NULL, attempt INTEGER NOT NULL, since INTEGER NOT NULL,
    headers TEXT NOT NULL, content_type TEXT NOT NULL, body BLOB NOT NULL,
    unsettled INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX put_aside_flow ON put_aside (workspace, flow, reason);
CREATE INDEX put_aside_due ON put_aside (due) WHERE reason = 'retry';
CREATE TABLE held (records INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO held VALUES (0, 0);
CREATE TRIGGER put_aside_in AFTER INSERT ON put_aside BEGIN
    UPDATE held SET records = records + 1, bytes = bytes + length(NEW.body);
END;
CREATE TRIGGER put_aside_out AFTER DELETE ON put_aside BEGIN
    UPDATE held SET records = records - 1, bytes = bytes - length(OLD.body);
END;
", "
-- Room by workspace, flow and whether the oldest may go for newer ones; the sum over all is not needed any more.
CREATE TABLE room (
    workspace TEXT NOT NULL, flow TEXT NOT NULL, dead INTEGER NOT NULL,
    records INTEGER NOT NULL, bytes INTEGER NOT NULL,
    PRIMARY KEY (workspace, flow, dead)
) WITHOUT ROWID;
INSERT INTO room SELECT workspace, flow, reason = 'dead', count(*), sum(length(body)) FROM put_aside GROUP BY 1, 2, 3;
DROP TRIGGER put_aside_in;
DROP TRIGGER put_aside_out;
DROP TABLE held;
CREATE TRIGGER room_in AFTER INSERT ON put_aside BEGIN
    INSERT INTO room VALUES (NEW.workspace, NEW.flow, NEW.reason = 'dead', 1, length(NEW.body))
    ON CONFLICT (workspace, flow, dead) DO UPDATE
    SET records = records + 1, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER room_out AFTER DELETE ON put_aside BEGIN
    UPDATE room SET records = records - 1, bytes = bytes - length(OLD.body)
    WHERE workspace = OLD.workspace AND flow = OLD.flow AND dead = (OLD.reason = 'dead');
    DELETE FROM room WHERE workspace = OLD.workspace AND flow = OLD.flow AND records <= 0;
END;
CREATE TRIGGER room_moved AFTER UPDATE OF reason ON put_aside WHEN (OLD.reason = 'dead') <> (NEW.reason = 'dead') BEGIN
    UPDATE room SET records = records - 1, bytes = bytes - length(OLD.body)
    WHERE workspace = OLD.workspace AND flow = OLD.flow AND dead = (OLD.reason = 'dead');
    DELETE FROM room WHERE workspace = OLD.workspace AND flow = OLD.flow AND records <= 0;
    INSERT INTO room VALUES (NEW.workspace, NEW.flow, NEW.reason = 'dead', 1, length(NEW.body))
    ON CONFLICT (workspace, flow, dead) DO UPDATE
    SET records = records + 1, bytes = bytes + excluded.bytes;
END;
CREATE INDEX put_aside_dead ON put_aside (workspace, id) WHERE reason = 'dead';
", "
-- Dead letters that were taken in not long ago, so that one that is delivered again is kept once.
CREATE TABLE letter (id TEXT PRIMARY KEY, since INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX letter_since ON letter (since);
", "
-- Kept under the workspace with its generation, which the headers of a record say; where they do not, it is the first.
UPDATE put_aside SET workspace = workspace || '#' || (headers ->> '$.generation')
WHERE CASE WHEN json_valid(headers) THEN coalesce(headers ->> '$.generation', 0) ELSE 0 END > 0;
DELETE FROM room;
INSERT INTO room SELECT workspace, flow, reason = 'dead', count(*), sum(length(body)) FROM put_aside GROUP BY 1, 2, 3;
", "
-- The wire type of the error; empty of records that were kept before.
ALTER TABLE put_aside ADD COLUMN kind TEXT NOT NULL DEFAULT '';
"];

/// How a backup keeps one workspace of the flow service. The ids of known dead letters do not say whose they are, and no
/// broker delivers such a letter again to the restored system.
pub const ONE_WORKSPACE: OneWorkspace = OneWorkspace::new(
    MIGRATIONS,
    &[
        "DELETE FROM put_aside WHERE workspace <> ?1",
        "DELETE FROM stop WHERE workspace <> ?1",
        "DELETE FROM room WHERE workspace <> ?1",
        "DELETE FROM letter",
        "DELETE FROM counter WHERE name <> 'epoch'",
    ],
);

/// The service's file.
#[derive(Debug, Clone)]
pub(crate) struct SqliteFlows {
    db: Database,
    quotas: Quotas,
}

impl SqliteFlows {
    /// Opens the file. Blocks.
    pub(crate) fn open(
        path: &Path,
        durability: Durability,
        quotas: Quotas,
    ) -> Result<Self, StorageError> {
        Ok(Self {
            db: Database::open(path, MIGRATIONS, durability)?,
            quotas,
        })
    }

    /// A store that ends with the process.
    #[cfg(test)]
    pub(crate) fn in_memory(quotas: Quotas) -> Result<Self, StorageError> {
        Ok(Self {
            db: Database::in_memory(MIGRATIONS)?,
            quotas,
        })
    }
}

#[async_trait]
impl KnownConfig for SqliteFlows {
    async fn config_known(&self) -> Result<Option<ConfigKnown>, Error> {
        KnownConfig::config_known(&self.db).await
    }

    async fn remember_config(&self, known: ConfigKnown) -> Result<(), Error> {
        KnownConfig::remember_config(&self.db, known).await
    }
}

#[async_trait]
impl StopStore for SqliteFlows {
    async fn next_epoch(&self) -> Result<u64, StorageError> {
        self.db
            .write(move |tx| {
                let sql =
                    "UPDATE counter SET value = value + 1 WHERE name = 'epoch' RETURNING value";
                Ok(tx
                    .prepare_cached(sql)?
                    .query_row([], |row| row.get::<_, i64>(0))?)
            })
            .await
            .map(|epoch| epoch.unsigned_abs())
    }

    async fn raise_epoch(&self, in_use: u64) -> Result<(), StorageError> {
        let in_use = i64::try_from(in_use).unwrap_or(i64::MAX - 1);
        self.db
            .write(move |tx| {
                let sql = "UPDATE counter SET value = ?1 WHERE name = 'epoch' AND value < ?1";
                tx.prepare_cached(sql)?.execute([in_use])?;
                Ok(())
            })
            .await
    }

    async fn begin_stop(
        &self,
        workspace: &WorkspaceKey,
        flow: &str,
        epoch: u64,
        now: i64,
    ) -> Result<(Progress, bool), StorageError> {
        let (name, workspace) = (workspace.name().to_owned(), workspace.to_string());
        let (flow, epoch) = (flow.to_owned(), epoch as i64);
        self.db
            .write(move |tx| {
                let older = "UPDATE OR REPLACE stop SET workspace = ?1
                             WHERE workspace = ?2 AND flow = ?3 AND epoch = ?4";
                tx.prepare_cached(older)?
                    .execute(params![workspace, name, flow, epoch])?;
                let sql = "SELECT phase, started, counts FROM stop
                           WHERE workspace = ?1 AND flow = ?2 AND epoch = ?3";
                let known = tx
                    .prepare_cached(sql)?
                    .query_row(params![workspace, flow, epoch], |row| {
                        let (phase, counts): (String, String) = (row.get(0)?, row.get(2)?);
                        Ok(Progress {
                            phase: Phase::parse(&phase),
                            started: row.get(1)?,
                            counts: serde_json::from_slice(counts.as_bytes()).unwrap_or_default(),
                        })
                    })
                    .optional()?;
                if let Some(known) = known {
                    return Ok((known, true));
                }
                let begun = Progress {
                    phase: Phase::Drain,
                    started: now,
                    counts: Counts::default(),
                };
                tx.prepare_cached("INSERT OR REPLACE INTO stop VALUES (?1, ?2, ?3, ?4, ?5, '{}')")?
                    .execute(params![workspace, flow, epoch, begun.phase.as_str(), now])?;
                Ok((begun, false))
            })
            .await
    }

    async fn stop_at(
        &self,
        workspace: &str,
        flow: &str,
        phase: Phase,
        counts: &Counts,
    ) -> Result<(), StorageError> {
        let (workspace, flow) = (workspace.to_owned(), flow.to_owned());
        let counts = serde_json::to_string(counts).unwrap_or_default();
        self.db
            .write(move |tx| {
                let sql =
                    "UPDATE stop SET phase = ?3, counts = ?4 WHERE workspace = ?1 AND flow = ?2";
                tx.prepare_cached(sql)?.execute(params![
                    workspace,
                    flow,
                    phase.as_str(),
                    counts
                ])?;
                Ok(())
            })
            .await
    }

    async fn end_stop(&self, workspace: &str, flow: &str) -> Result<(), StorageError> {
        let (workspace, flow) = (workspace.to_owned(), flow.to_owned());
        self.db
            .write(move |tx| {
                tx.prepare_cached("DELETE FROM stop WHERE workspace = ?1 AND flow = ?2")?
                    .execute([&workspace, &flow])?;
                Ok(())
            })
            .await
    }
}

#[cfg(test)]
mod tests;
