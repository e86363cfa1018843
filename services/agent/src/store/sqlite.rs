//! The ledger in one SQLite file. Here and in `heads.rs` is all SQL.

use std::path::Path;

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tg_collections::KnownConfig;
use tg_provenance::Ended;
use tg_schemas::WorkspaceKey;
use tg_schemas::msg::DetachedRun;
use tg_storage::rusqlite::{OptionalExtension, Transaction, params};
use tg_storage::{Database, Durability, StorageError};

use super::heads;
use super::{
    Asked, Began, Caller, IsOver, KEEP_ENDS_MS, KEEP_MS, LastHeads, LedgerStore, PURGE,
    PURGE_EVERY, Piece, PieceKind, RunEnd, RunKey, SignedHead, StepRow,
};
use crate::engine::decision::{Decision, Ending, Observation};

/// Scripts in the order they are run; only ever appended.
const MIGRATIONS: &[&str] = &[
    "
CREATE TABLE run (
  question TEXT PRIMARY KEY,
  text TEXT NOT NULL,
  run TEXT NOT NULL,
  started_at TEXT NOT NULL,
  created_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX run_created ON run (created_ms);
CREATE TABLE step (
  run TEXT NOT NULL,
  step INTEGER NOT NULL,
  decision TEXT,
  observation TEXT,
  ending TEXT,
  done INTEGER NOT NULL DEFAULT 0, -- 1: the step, 2: the run
  created_ms INTEGER NOT NULL,
  PRIMARY KEY (run, step)
) WITHOUT ROWID;
CREATE INDEX step_created ON step (created_ms);
",
    "
CREATE TABLE said (
  run TEXT NOT NULL,
  step INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  kind INTEGER NOT NULL, -- 0: of the thought, 1: the end of the thought, 2: of the answer
  text TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  PRIMARY KEY (run, step, seq)
) WITHOUT ROWID;
CREATE INDEX said_created ON said (created_ms);
",
    // Runs of before are of no workspace: they go by their age, within two days.
    "
ALTER TABLE run ADD COLUMN workspace TEXT NOT NULL DEFAULT '';
CREATE INDEX run_workspace ON run (workspace, run);
",
    "
CREATE TABLE detached (
  user TEXT NOT NULL,
  question TEXT NOT NULL, -- its id alone
  run TEXT NOT NULL,
  workspace TEXT NOT NULL,
  flow TEXT NOT NULL,
  request TEXT NOT NULL,
  cancelled INTEGER NOT NULL DEFAULT 0,
  deadline_ms INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  PRIMARY KEY (user, question)
) WITHOUT ROWID;
CREATE INDEX detached_run ON detached (run);
CREATE INDEX detached_created ON detached (created_ms);
",
    "
CREATE TABLE ended (
  workspace TEXT NOT NULL,
  run TEXT NOT NULL,
  day TEXT NOT NULL,
  number INTEGER NOT NULL, -- within the day
  collection TEXT NOT NULL,
  hash TEXT NOT NULL,
  ended_ms INTEGER NOT NULL,
  PRIMARY KEY (workspace, run)
) WITHOUT ROWID;
CREATE UNIQUE INDEX ended_day ON ended (workspace, day, number);
CREATE INDEX ended_at ON ended (ended_ms);
CREATE TABLE head (
  workspace TEXT NOT NULL,
  number INTEGER NOT NULL,
  day TEXT NOT NULL,
  text TEXT NOT NULL,
  signature TEXT NOT NULL,
  PRIMARY KEY (workspace, number)
) WITHOUT ROWID;
CREATE TABLE head_key (id INTEGER PRIMARY KEY CHECK (id = 1), pkcs8 BLOB NOT NULL);
",
];

/// Detached runs that are under way: not over, not cancelled, in time.
macro_rules! under_way {
    () => {
        "cancelled = 0 AND deadline_ms > ?3 AND NOT EXISTS
           (SELECT 1 FROM step WHERE step.run = detached.run AND done = 2)"
    };
}

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
        let Asked {
            workspace,
            is_over,
            key,
            text,
            detached,
        } = asked;
        self.db
            .write(move |tx| {
                let known = tx
                    .prepare_cached(
                        "SELECT run, started_at FROM run WHERE question = ?1 AND text = ?2",
                    )?
                    .query_row(params![key, text], |row| {
                        Ok(Began {
                            run: row.get(0)?,
                            started_at: row.get(1)?,
                        })
                    })
                    .optional()?;
                if known.is_some() || is_over.holds() {
                    return Ok(known);
                }
                if let Some(caller) = detached {
                    enter(tx, &caller, &new.run, &workspace, now_ms)?;
                }
                tx.prepare_cached(
                    "INSERT OR REPLACE INTO run (question, text, run, started_at, created_ms, workspace)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute(params![
                    key,
                    text,
                    new.run,
                    new.started_at,
                    now_ms,
                    workspace
                ])?;
                if now_ms % PURGE_EVERY == 0 {
                    purge(tx, now_ms - KEEP_MS)?;
                    heads::purge(tx, now_ms - KEEP_ENDS_MS)?;
                }
                Ok(Some(new))
            })
            .await
    }

    async fn detached(
        &self,
        user: &str,
        after: &str,
        most: usize,
        now_ms: i64,
    ) -> Result<Vec<DetachedRun>, StorageError> {
        let (user, after) = (user.to_owned(), after.to_owned());
        self.db
            .read(move |conn| {
                let mut query = conn.prepare_cached(concat!(
                    "SELECT question, workspace, flow, request, created_ms FROM detached
                     WHERE user = ?1 AND question > ?2 AND ",
                    under_way!(),
                    " ORDER BY question LIMIT ?4"
                ))?;
                let most = i64::try_from(most).unwrap_or(i64::MAX);
                let rows = query.query_map(params![user, after, now_ms, most], |row| {
                    Ok(DetachedRun {
                        id: row.get(0)?,
                        workspace: row.get(1)?,
                        flow: row.get(2)?,
                        request_id: row.get(3)?,
                        started_ms: row.get(4)?,
                    })
                })?;
                Ok(rows.collect::<Result<_, _>>()?)
            })
            .await
    }

    async fn cancel(&self, user: &str, question: &str, now_ms: i64) -> Result<bool, StorageError> {
        let (user, question) = (user.to_owned(), question.to_owned());
        self.db
            .write(move |tx| {
                let mut cancel = tx.prepare_cached(concat!(
                    "UPDATE detached SET cancelled = 1 WHERE user = ?1 AND question = ?2 AND ",
                    under_way!()
                ))?;
                Ok(cancel.execute(params![user, question, now_ms])? > 0)
            })
            .await
    }

    async fn is_cancelled(&self, run: &str) -> Result<bool, StorageError> {
        let run = run.to_owned();
        self.db
            .read(move |conn| {
                let cancelled = conn
                    .prepare_cached(
                        "SELECT EXISTS (SELECT 1 FROM detached WHERE run = ?1 AND cancelled = 1)",
                    )?
                    .query_row([run], |row| row.get(0))?;
                Ok(cancelled)
            })
            .await
    }

    async fn is_open(&self, question: String) -> Result<bool, StorageError> {
        self.db
            .read(move |conn| {
                let open = conn
                    .prepare_cached(
                        "SELECT NOT EXISTS (SELECT 1 FROM step WHERE step.run = run.run AND done = 2)
                         FROM run WHERE question = ?1",
                    )?
                    .query_row([question], |row| row.get::<_, bool>(0))
                    .optional()?;
                Ok(open.unwrap_or(false))
            })
            .await
    }

    async fn load(&self, run: String, step: u32) -> Result<StepRow, StorageError> {
        self.db
            .read(move |conn| {
                let later = conn
                    .prepare_cached("SELECT EXISTS (SELECT 1 FROM step WHERE run = ?1 AND step > ?2)")?
                    .query_row(params![run, step], |row| row.get::<_, bool>(0))?;
                let row = conn
                    .prepare_cached(
                        "SELECT decision, observation, ending, done FROM step WHERE run = ?1 AND step = ?2",
                    )?
                    .query_row(params![run, step], |row| {
                        Ok((
                            row.get::<_, Option<String>>(0)?,
                            row.get::<_, Option<String>>(1)?,
                            row.get::<_, Option<String>>(2)?,
                            row.get::<_, u8>(3)? > 0,
                        ))
                    })
                    .optional()?;
                let Some((decision, observation, ending, done)) = row else {
                    return Ok(StepRow {
                        later,
                        ..StepRow::default()
                    });
                };
                Ok(StepRow {
                    decision: read_json(decision)?,
                    observation: read_json(observation)?,
                    ending: read_json(ending)?,
                    done,
                    later,
                })
            })
            .await
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
        self.db
            .write(move |tx| {
                if is_over.holds() {
                    return Ok(false);
                }
                let mut insert = tx.prepare_cached(
                    "INSERT OR REPLACE INTO said (run, step, seq, kind, text, created_ms)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?;
                for (seq, piece) in (number(seq)..).zip(&pieces) {
                    let kind = piece.kind as u8;
                    insert.execute(params![run, step, seq, kind, piece.text, now_ms])?;
                }
                Ok(true)
            })
            .await
    }

    async fn heard(
        &self,
        run: &str,
        step: u32,
        from: u64,
        until: u64,
    ) -> Result<Option<Vec<Piece>>, StorageError> {
        let run = run.to_owned();
        self.db
            .write(move |tx| {
                tx.prepare_cached("DELETE FROM said WHERE run = ?1 AND step = ?2 AND seq >= ?3")?
                    .execute(params![run, step, number(until)])?;
                let mut query = tx.prepare_cached(
                    "SELECT kind, text FROM said WHERE run = ?1 AND step = ?2 AND seq >= ?3
                     ORDER BY seq",
                )?;
                let rows = query.query_map(params![run, step, number(from)], |row| {
                    Ok((row.get::<_, u8>(0)?, row.get(1)?))
                })?;
                let mut pieces = Vec::new();
                for row in rows {
                    let (kind, text) = row?;
                    let Some(kind) = PieceKind::ALL.get(usize::from(kind)).copied() else {
                        return Ok(None);
                    };
                    pieces.push(Piece { kind, text });
                }
                let all = u64::try_from(pieces.len()) == Ok(until.saturating_sub(from));
                Ok(all.then_some(pieces))
            })
            .await
    }

    async fn decide(
        &self,
        run: &RunKey,
        step: u32,
        decision: &Decision,
        now_ms: i64,
    ) -> Result<bool, StorageError> {
        let RunKey { run, is_over } = run.clone();
        let text = write_json(decision)?;
        self.db
            .write(move |tx| {
                if is_over.holds() {
                    return Ok(false);
                }
                tx.prepare_cached(
                    "INSERT INTO step (run, step, decision, created_ms) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT (run, step) DO UPDATE SET decision = excluded.decision
                     WHERE step.decision IS NULL",
                )?
                .execute(params![run, step, text, now_ms])?;
                tx.prepare_cached("DELETE FROM said WHERE run = ?1 AND step = ?2")?
                    .execute(params![run, step])?;
                Ok(true)
            })
            .await
    }

    async fn observe(
        &self,
        run: &str,
        step: u32,
        observation: &Observation,
    ) -> Result<(), StorageError> {
        let (run, text) = (run.to_owned(), write_json(observation)?);
        self.db
            .write(move |tx| {
                tx.prepare_cached(
                    "UPDATE step SET observation = ?3
                     WHERE run = ?1 AND step = ?2 AND observation IS NULL",
                )?
                .execute(params![run, step, text])?;
                Ok(())
            })
            .await
    }

    async fn end(
        &self,
        run: &RunKey,
        step: u32,
        ending: &Ending,
        now_ms: i64,
    ) -> Result<bool, StorageError> {
        let RunKey { run, is_over } = run.clone();
        let text = write_json(ending)?;
        self.db
            .write(move |tx| {
                if is_over.holds() {
                    return Ok(false);
                }
                tx.prepare_cached(
                    "INSERT INTO step (run, step, ending, created_ms) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT (run, step) DO UPDATE SET ending = excluded.ending
                     WHERE step.ending IS NULL",
                )?
                .execute(params![run, step, text, now_ms])?;
                Ok(true)
            })
            .await
    }

    async fn finish_step(&self, run: &str, step: u32) -> Result<(), StorageError> {
        let run = run.to_owned();
        self.db
            .write(move |tx| {
                tx.prepare_cached("UPDATE step SET done = 1 WHERE run = ?1 AND step = ?2")?
                    .execute(params![run, step])?;
                Ok(())
            })
            .await
    }

    async fn finish_run(
        &self,
        run: &RunKey,
        step: u32,
        end: &RunEnd,
        now_ms: i64,
    ) -> Result<(), StorageError> {
        let (RunKey { run, is_over }, end) = (run.clone(), end.clone());
        self.db
            .write(move |tx| {
                tx.prepare_cached("UPDATE step SET done = 2 WHERE run = ?1 AND step = ?2")?
                    .execute(params![run, step])?;
                match end.ended.hash.is_empty() || is_over.holds() {
                    true => Ok(()),
                    false => heads::note(tx, &end, now_ms),
                }
            })
            .await
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
        self.db
            .read(|conn| {
                let mut known = conn.prepare_cached(
                    "SELECT workspace FROM run WHERE workspace <> ''
                     UNION SELECT workspace FROM ended UNION SELECT workspace FROM head",
                )?;
                let rows = known.query_map([], |row| row.get(0))?;
                Ok(rows.collect::<Result<_, _>>()?)
            })
            .await
    }

    async fn purge_some(&self, workspace: &str) -> Result<bool, StorageError> {
        let workspace = workspace.to_owned();
        self.db
            .write(move |tx| {
                let mut some =
                    tx.prepare_cached("SELECT run FROM run WHERE workspace = ?1 LIMIT ?2")?;
                let runs = some.query_map(params![workspace, PURGE], |row| row.get(0))?;
                let runs: Vec<String> = runs.collect::<Result<_, _>>()?;
                for sql in [
                    "DELETE FROM said WHERE run = ?1 AND ?2 <> ''",
                    "DELETE FROM step WHERE run = ?1 AND ?2 <> ''",
                    "DELETE FROM detached WHERE run = ?1 AND ?2 <> ''",
                    "DELETE FROM run WHERE run = ?1 AND workspace = ?2",
                ] {
                    let mut delete = tx.prepare_cached(sql)?;
                    for run in &runs {
                        delete.execute([run, &workspace])?;
                    }
                }
                Ok(heads::purge_some(tx, &workspace)? || !runs.is_empty())
            })
            .await
    }

    fn known_config(&self) -> &dyn KnownConfig {
        &self.db
    }
}

/// Notes for whom a run goes on without its caller.
fn enter(
    tx: &Transaction<'_>,
    caller: &Caller,
    run: &str,
    workspace: &str,
    now_ms: i64,
) -> Result<(), StorageError> {
    let key = WorkspaceKey::parse(workspace);
    tx.prepare_cached(
        "INSERT OR REPLACE INTO detached
           (user, question, run, workspace, flow, request, deadline_ms, created_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        caller.user,
        caller.question,
        run,
        key.name(),
        caller.flow,
        caller.request,
        caller.deadline_ms,
        now_ms
    ])?;
    Ok(())
}

fn purge(tx: &Transaction<'_>, before_ms: i64) -> Result<(), StorageError> {
    for sql in [
        "DELETE FROM step WHERE (run, step) IN
           (SELECT run, step FROM step WHERE created_ms < ?1 ORDER BY created_ms LIMIT ?2)",
        "DELETE FROM run WHERE question IN
           (SELECT question FROM run WHERE created_ms < ?1 ORDER BY created_ms LIMIT ?2)",
        "DELETE FROM detached WHERE (user, question) IN
           (SELECT user, question FROM detached WHERE created_ms < ?1 ORDER BY created_ms LIMIT ?2)",
        "DELETE FROM said WHERE (run, step, seq) IN
           (SELECT run, step, seq FROM said WHERE created_ms < ?1 ORDER BY created_ms LIMIT ?2)",
    ] {
        tx.prepare_cached(sql)?.execute(params![before_ms, PURGE])?;
    }
    Ok(())
}

fn number(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

fn write_json(value: &impl Serialize) -> Result<String, StorageError> {
    serde_json::to_string(value).map_err(|error| StorageError::Failed(error.to_string()))
}

fn read_json<T: DeserializeOwned>(text: Option<String>) -> Result<Option<T>, StorageError> {
    text.map(|text| serde_json::from_str(&text))
        .transpose()
        .map_err(|error| StorageError::Corrupt(error.to_string()))
}
