//! Which run a question began, and the end of what is kept of runs.

use tg_storage::rusqlite::{Connection, OptionalExtension, Transaction, params};
use tg_storage::{StorageError, query_rows};

use super::{detached, heads};
use crate::store::{Asked, Began, KEEP_ENDS_MS, KEEP_MS, PURGE, PURGE_EVERY};

/// The run that a question began, which may be this one; `None` where the workspace is over.
pub(super) fn begin(
    tx: &Transaction<'_>,
    asked: &Asked,
    new: Began,
    now_ms: i64,
) -> Result<Option<Began>, StorageError> {
    let known = tx
        .prepare_cached("SELECT run, started_at FROM run WHERE question = ?1 AND text = ?2")?
        .query_row(params![asked.key, asked.text], |row| {
            Ok(Began {
                run: row.get(0)?,
                started_at: row.get(1)?,
            })
        })
        .optional()?;
    if known.is_some() || asked.is_over.holds() {
        return Ok(known);
    }
    if let Some(caller) = &asked.detached {
        detached::enter(tx, caller, &new.run, &asked.workspace, now_ms)?;
    }
    tx.prepare_cached(
        "INSERT OR REPLACE INTO run (question, text, run, started_at, created_ms, workspace)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        asked.key,
        asked.text,
        new.run,
        new.started_at,
        now_ms,
        asked.workspace
    ])?;
    if now_ms % PURGE_EVERY == 0 {
        purge(tx, now_ms - KEEP_MS)?;
        heads::purge(tx, now_ms - KEEP_ENDS_MS)?;
    }
    Ok(Some(new))
}

/// Whether the run of a question goes on.
pub(super) fn is_open(conn: &Connection, question: &str) -> Result<bool, StorageError> {
    let open = conn
        .prepare_cached(
            "SELECT NOT EXISTS (SELECT 1 FROM step WHERE step.run = run.run AND done = 2)
             FROM run WHERE question = ?1",
        )?
        .query_row([question], |row| row.get::<_, bool>(0))
        .optional()?;
    Ok(open.unwrap_or(false))
}

/// Workspaces of which something is kept.
pub(super) fn workspaces(conn: &Connection) -> Result<Vec<String>, StorageError> {
    let sql = "SELECT workspace FROM run WHERE workspace <> ''
         UNION SELECT workspace FROM ended UNION SELECT workspace FROM head";
    query_rows(conn, sql, [], |row| row.get(0))
}

/// Removes some of what belongs to a workspace. `false` when there was none.
pub(super) fn purge_some(tx: &Transaction<'_>, workspace: &str) -> Result<bool, StorageError> {
    let mut some = tx.prepare_cached("SELECT run FROM run WHERE workspace = ?1 LIMIT ?2")?;
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
            delete.execute([run, workspace])?;
        }
    }
    Ok(heads::purge_some(tx, workspace)? || !runs.is_empty())
}

/// Removes some rows that are older.
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
