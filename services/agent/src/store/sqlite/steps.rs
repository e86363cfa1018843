//! What each step decided, saw, or how it ended.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tg_storage::StorageError;
use tg_storage::rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::store::StepRow;

/// The row of a step, and whether there are later ones.
pub(super) fn load(conn: &Connection, run: &str, step: u32) -> Result<StepRow, StorageError> {
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
}

/// Notes what a step decided; the first decision stands.
pub(super) fn decide(
    tx: &Transaction<'_>,
    run: &str,
    step: u32,
    text: &str,
    now_ms: i64,
) -> Result<(), StorageError> {
    tx.prepare_cached(
        "INSERT INTO step (run, step, decision, created_ms) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (run, step) DO UPDATE SET decision = excluded.decision
         WHERE step.decision IS NULL",
    )?
    .execute(params![run, step, text, now_ms])?;
    Ok(())
}

/// Notes what a step saw; the first observation stands.
pub(super) fn observe(
    tx: &Transaction<'_>,
    run: &str,
    step: u32,
    text: &str,
) -> Result<(), StorageError> {
    tx.prepare_cached(
        "UPDATE step SET observation = ?3
         WHERE run = ?1 AND step = ?2 AND observation IS NULL",
    )?
    .execute(params![run, step, text])?;
    Ok(())
}

/// Notes how a step ended; the first ending stands.
pub(super) fn end(
    tx: &Transaction<'_>,
    run: &str,
    step: u32,
    text: &str,
    now_ms: i64,
) -> Result<(), StorageError> {
    tx.prepare_cached(
        "INSERT INTO step (run, step, ending, created_ms) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (run, step) DO UPDATE SET ending = excluded.ending
         WHERE step.ending IS NULL",
    )?
    .execute(params![run, step, text, now_ms])?;
    Ok(())
}

/// Nothing more is to be done for a step.
pub(super) fn finish(tx: &Transaction<'_>, run: &str, step: u32) -> Result<(), StorageError> {
    done(tx, run, step, 1)
}

/// Nothing more is to be done for the run of a step.
pub(super) fn finish_run(tx: &Transaction<'_>, run: &str, step: u32) -> Result<(), StorageError> {
    done(tx, run, step, 2)
}

fn done(tx: &Transaction<'_>, run: &str, step: u32, what: u8) -> Result<(), StorageError> {
    tx.prepare_cached("UPDATE step SET done = ?3 WHERE run = ?1 AND step = ?2")?
        .execute(params![run, step, what])?;
    Ok(())
}

/// As it is kept.
pub(super) fn write_json(value: &impl Serialize) -> Result<String, StorageError> {
    serde_json::to_string(value).map_err(|error| StorageError::Failed(error.to_string()))
}

fn read_json<T: DeserializeOwned>(text: Option<String>) -> Result<Option<T>, StorageError> {
    text.map(|text| serde_json::from_str(&text))
        .transpose()
        .map_err(|error| StorageError::Corrupt(error.to_string()))
}
