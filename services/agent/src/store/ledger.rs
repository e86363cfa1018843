//! The referee of repeated work: which run a question began, and what each step decided, saw, or how it
//! ended. It is not the run's memory: that travels in the step records.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tg_storage::rusqlite::{OptionalExtension, Transaction, params};
use tg_storage::{Database, Durability, StorageError};

use crate::engine::decision::{Decision, Ending, Observation};

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
];

/// Rows are kept this long: well past any deadline.
const KEEP_MS: i64 = 48 * 3600 * 1000;
/// Rows removed at once.
const PURGE: i64 = 512;
/// Every so many runs, old rows are removed.
const PURGE_EVERY: i64 = 256;

/// A run and when it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Began {
    /// Its id.
    pub run: String,
    /// Its start, as the trace shows it.
    pub started_at: String,
}

/// What a piece of a model's text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieceKind {
    /// Of the thought.
    Thought,
    /// Of the thought, and its last.
    ThoughtEnd,
    /// Of the answer.
    Answer,
}

impl PieceKind {
    const ALL: [Self; 3] = [Self::Thought, Self::ThoughtEnd, Self::Answer];
}

/// A piece of a model's text that was passed on before the step was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// What it is.
    pub kind: PieceKind,
    /// The piece.
    pub text: String,
}

/// What is known of a step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepRow {
    /// What was decided.
    pub decision: Option<Decision>,
    /// What the tool returned.
    pub observation: Option<Observation>,
    /// How the run ended here, without an answer.
    pub ending: Option<Ending>,
    /// Everything that follows from this step was done.
    pub done: bool,
    /// A later step of the run was begun: only the trace can still lack this one.
    pub later: bool,
}

/// The ledger.
#[derive(Debug, Clone)]
pub struct Ledger {
    db: Database,
}

impl Ledger {
    /// Opens or creates the ledger in a directory.
    pub fn open(dir: &Path, durability: Durability) -> Result<Self, StorageError> {
        let db = Database::open(&Self::file(dir), MIGRATIONS, durability)?;
        Ok(Self { db })
    }

    /// The ledger's file in a directory.
    pub fn file(dir: &Path) -> PathBuf {
        dir.join("agent.db")
    }

    /// A ledger that ends with the process.
    pub fn in_memory() -> Result<Self, StorageError> {
        let db = Database::in_memory(MIGRATIONS)?;
        Ok(Self { db })
    }

    /// The run that a question began: `new` unless the same question has one already.
    pub async fn begin(
        &self,
        question: String,
        text: String,
        new: Began,
        now_ms: i64,
    ) -> Result<Began, StorageError> {
        self.db
            .write(move |tx| {
                let known = tx
                    .prepare_cached(
                        "SELECT run, started_at FROM run WHERE question = ?1 AND text = ?2",
                    )?
                    .query_row(params![question, text], |row| {
                        Ok(Began {
                            run: row.get(0)?,
                            started_at: row.get(1)?,
                        })
                    })
                    .optional()?;
                if let Some(known) = known {
                    return Ok(known);
                }
                tx.prepare_cached(
                    "INSERT OR REPLACE INTO run (question, text, run, started_at, created_ms)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute(params![
                    question,
                    text,
                    new.run,
                    new.started_at,
                    now_ms
                ])?;
                if now_ms % PURGE_EVERY == 0 {
                    purge(tx, now_ms - KEEP_MS)?;
                }
                Ok(new)
            })
            .await
    }

    /// Whether a question has begun a run that is not over.
    pub async fn is_open(&self, question: String) -> Result<bool, StorageError> {
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

    /// What is known of a step.
    pub async fn load(&self, run: String, step: u32) -> Result<StepRow, StorageError> {
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

    /// Notes pieces that are about to be passed on as the parts from `seq` on, for a run that goes on
    /// whatever happens to this process.
    pub async fn say(
        &self,
        run: &str,
        step: u32,
        seq: u64,
        pieces: Vec<Piece>,
        now_ms: i64,
    ) -> Result<(), StorageError> {
        let run = run.to_owned();
        self.db
            .write(move |tx| {
                let mut insert = tx.prepare_cached(
                    "INSERT OR REPLACE INTO said (run, step, seq, kind, text, created_ms)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?;
                for (seq, piece) in (number(seq)..).zip(&pieces) {
                    let kind = piece.kind as u8;
                    insert.execute(params![run, step, seq, kind, piece.text, now_ms])?;
                }
                Ok(())
            })
            .await
    }

    /// Pieces of an undecided step that were passed on as the parts from `from` to before `until`; later ones
    /// are forgotten. `None` if one of them is not known.
    pub async fn heard(
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

    /// Commits a decision.
    pub async fn decide(
        &self,
        run: &str,
        step: u32,
        decision: &Decision,
        now_ms: i64,
    ) -> Result<(), StorageError> {
        let (run, text) = (run.to_owned(), write_json(decision)?);
        self.db
            .write(move |tx| {
                tx.prepare_cached(
                    "INSERT INTO step (run, step, decision, created_ms) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT (run, step) DO UPDATE SET decision = excluded.decision
                     WHERE step.decision IS NULL",
                )?
                .execute(params![run, step, text, now_ms])?;
                tx.prepare_cached("DELETE FROM said WHERE run = ?1 AND step = ?2")?
                    .execute(params![run, step])?;
                Ok(())
            })
            .await
    }

    /// Commits what a tool returned.
    pub async fn observe(
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

    /// Commits that the run ends here without an answer.
    pub async fn end(
        &self,
        run: &str,
        step: u32,
        ending: &Ending,
        now_ms: i64,
    ) -> Result<(), StorageError> {
        let (run, text) = (run.to_owned(), write_json(ending)?);
        self.db
            .write(move |tx| {
                tx.prepare_cached(
                    "INSERT INTO step (run, step, ending, created_ms) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT (run, step) DO UPDATE SET ending = excluded.ending
                     WHERE step.ending IS NULL",
                )?
                .execute(params![run, step, text, now_ms])?;
                Ok(())
            })
            .await
    }

    /// Notes that everything that follows from a step was done.
    pub async fn finish_step(&self, run: &str, step: u32) -> Result<(), StorageError> {
        self.mark(run, step, 1).await
    }

    /// Notes that everything that follows from a run's last step was done.
    pub async fn finish_run(&self, run: &str, step: u32) -> Result<(), StorageError> {
        self.mark(run, step, 2).await
    }

    async fn mark(&self, run: &str, step: u32, done: u8) -> Result<(), StorageError> {
        let run = run.to_owned();
        self.db
            .write(move |tx| {
                tx.prepare_cached("UPDATE step SET done = ?3 WHERE run = ?1 AND step = ?2")?
                    .execute(params![run, step, done])?;
                Ok(())
            })
            .await
    }
}

fn purge(tx: &Transaction<'_>, before_ms: i64) -> Result<(), StorageError> {
    for sql in [
        "DELETE FROM step WHERE (run, step) IN
           (SELECT run, step FROM step WHERE created_ms < ?1 ORDER BY created_ms LIMIT ?2)",
        "DELETE FROM run WHERE question IN
           (SELECT question FROM run WHERE created_ms < ?1 ORDER BY created_ms LIMIT ?2)",
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
    serde_json::to_string(value).map_err(|error| StorageError::Sql(error.to_string()))
}

fn read_json<T: DeserializeOwned>(text: Option<String>) -> Result<Option<T>, StorageError> {
    text.map(|text| serde_json::from_str(&text))
        .transpose()
        .map_err(|error| StorageError::Corrupt(error.to_string()))
}

#[cfg(test)]
mod tests;
