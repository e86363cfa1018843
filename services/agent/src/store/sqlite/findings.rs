//! What subagents found.

use tg_storage::rusqlite::{Connection, Transaction, params};
use tg_storage::{StorageError, query_rows};

use super::steps;
use crate::engine::decision::Finding;

/// Keeps what a subagent found, unless it is there; returns how many arrived before it.
pub(super) fn enter(
    tx: &Transaction<'_>,
    run: &str,
    subagent: u32,
    text: &str,
    now_ms: i64,
) -> Result<u32, StorageError> {
    tx.prepare_cached(
        "INSERT OR IGNORE INTO finding (run, subagent, number, finding, created_ms)
         SELECT ?1, ?2, count(*), ?3, ?4 FROM finding WHERE run = ?1",
    )?
    .execute(params![run, subagent, text, now_ms])?;
    let number = tx
        .prepare_cached("SELECT number FROM finding WHERE run = ?1 AND subagent = ?2")?
        .query_row(params![run, subagent], |row| row.get(0))?;
    Ok(number)
}

/// All of a run, in the order of arrival.
pub(super) fn of(conn: &Connection, run: &str) -> Result<Vec<Finding>, StorageError> {
    let sql = "SELECT finding FROM finding WHERE run = ?1 ORDER BY number";
    let texts = query_rows(conn, sql, [run], |row| row.get::<_, String>(0))?;
    let found = texts.into_iter().map(|text| steps::read_json(Some(text)));
    let found: Result<Vec<Option<Finding>>, StorageError> = found.collect();
    Ok(found?.into_iter().flatten().collect())
}
