//! What came of each of several calls of a step.

use tg_storage::rusqlite::{Connection, Transaction, params};
use tg_storage::{StorageError, query_rows};

use super::json::read_json;
use crate::engine::decision::Observation;
use crate::store::calls::CallAt;

/// Of a step, by their number.
pub(super) fn of(
    conn: &Connection,
    run: &str,
    step: u32,
) -> Result<Vec<(u32, Observation)>, StorageError> {
    let sql = "SELECT nth, observation FROM call_seen WHERE run = ?1 AND step = ?2 ORDER BY nth";
    let rows = query_rows(conn, sql, params![run, step], |row| {
        Ok((row.get::<_, u32>(0)?, row.get::<_, Option<String>>(1)?))
    })?;
    let read = |(nth, text)| Ok((nth, read_json(text)?.unwrap_or_default()));
    rows.into_iter().map(read).collect()
}

/// The step has seen all of them.
pub(super) fn forget(tx: &Transaction<'_>, run: &str, step: u32) -> Result<(), StorageError> {
    tx.prepare_cached("DELETE FROM call_seen WHERE run = ?1 AND step = ?2")?
        .execute(params![run, step])?;
    Ok(())
}

/// How long each took of a run, in milliseconds, by step and number: of those that steps have seen, and of others.
pub(super) fn took(conn: &Connection, run: &str) -> Result<Vec<(CallAt, i64)>, StorageError> {
    let sql = "SELECT step, key, coalesce(json_extract(value, '$.duration_ms'), 0)
               FROM step, json_each(step.observation, '$.calls') WHERE run = ?1
               UNION ALL
               SELECT step, nth, coalesce(json_extract(observation, '$.duration_ms'), 0)
               FROM call_seen WHERE run = ?1";
    query_rows(conn, sql, [run], |row| {
        Ok(((row.get(0)?, row.get(1)?), row.get(2)?))
    })
}

/// Notes what came of one; the first stands.
pub(super) fn observe(
    tx: &Transaction<'_>,
    run: &str,
    (step, nth): CallAt,
    text: &str,
    now_ms: i64,
) -> Result<(), StorageError> {
    tx.prepare_cached(
        "INSERT OR IGNORE INTO call_seen (run, step, nth, observation, created_ms)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![run, step, nth, text, now_ms])?;
    Ok(())
}
