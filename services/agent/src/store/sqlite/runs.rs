//! Which run a question began, and the end of what is kept of runs.

use tg_storage::rusqlite::{Connection, OptionalExtension, Transaction, params};
use tg_storage::{StorageError, query_rows};

use super::{detached, heads, steps, tasks, usage};
use crate::engine::router::Route;
use crate::store::{Asked, Began, KEEP_ENDS_MS, KEEP_MS, PURGE, PURGE_EVERY};

/// How much is written to begin a run. Now and then what is too old goes, which may be much.
pub(super) fn bytes_to_begin(asked: &Asked, now_ms: i64) -> usize {
    match now_ms % PURGE_EVERY {
        0 => usize::MAX,
        _ => asked.key.len() + asked.text.len(),
    }
}

/// The run that a question began, which may be this one; `None` where the workspace is over.
pub(super) fn begin(
    tx: &Transaction<'_>,
    asked: &Asked,
    new: Began,
    now_ms: i64,
) -> Result<Option<Began>, StorageError> {
    let known = tx
        .prepare_cached("SELECT run, started_at, route FROM run WHERE question = ?1 AND text = ?2")?
        .query_row(params![asked.key, asked.text], |row| {
            Ok(Began {
                run: row.get(0)?,
                started_at: row.get(1)?,
                route: read_route(row.get(2)?),
            })
        })
        .optional()?;
    if known.is_some() || asked.is_over.holds() {
        return Ok(known);
    }
    let route = new.route.as_ref().map(steps::write_json).transpose()?;
    if let Some(caller) = &asked.asker {
        detached::enter(tx, caller, &new.run, &asked.workspace, now_ms)?;
    }
    tx.prepare_cached(
        "INSERT OR REPLACE INTO run (question, text, run, started_at, created_ms, workspace, route)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        asked.key,
        asked.text,
        new.run,
        new.started_at,
        now_ms,
        asked.workspace,
        route
    ])?;
    if now_ms % PURGE_EVERY == 0 {
        forget(tx, now_ms)?;
    }
    Ok(Some(new))
}

/// One that cannot be read is settled anew.
fn read_route(text: Option<String>) -> Option<Route> {
    text.and_then(|text| serde_json::from_slice(text.as_bytes()).ok())
}

/// Settles the route of the run that a question began; the first one stands.
pub(super) fn route(
    tx: &Transaction<'_>,
    question: &str,
    run: &str,
    route: &str,
) -> Result<Option<Route>, StorageError> {
    tx.prepare_cached(
        "UPDATE run SET route = ?3 WHERE question = ?1 AND run = ?2 AND route IS NULL",
    )?
    .execute([question, run, route])?;
    let stands = tx
        .prepare_cached("SELECT route FROM run WHERE question = ?1 AND run = ?2")?
        .query_row([question, run], |row| row.get(0))
        .optional()?;
    Ok(stands.and_then(read_route))
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
         UNION SELECT workspace FROM ended UNION SELECT workspace FROM head
         UNION SELECT workspace FROM usage_total UNION SELECT workspace FROM task";
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
        "DELETE FROM finding WHERE run = ?1 AND ?2 <> ''",
        "DELETE FROM told WHERE run = ?1 AND ?2 <> ''",
        "DELETE FROM confirmation WHERE run = ?1 AND ?2 <> ''",
        "DELETE FROM call_seen WHERE run = ?1 AND ?2 <> ''",
        "DELETE FROM remade WHERE run = ?1 AND ?2 <> ''",
        "DELETE FROM record WHERE root = ?1 AND ?2 <> ''",
        "DELETE FROM usage_call WHERE run = ?1 AND ?2 <> ''",
        "DELETE FROM run WHERE run = ?1 AND workspace = ?2",
    ] {
        let mut delete = tx.prepare_cached(sql)?;
        for run in &runs {
            delete.execute([run, workspace])?;
        }
    }
    tasks::purge(tx, workspace)?;
    let more = usage::purge_some(tx, workspace)? || !runs.is_empty();
    Ok(heads::purge_some(tx, workspace)? || more)
}

/// Removes some of what is too old; whether there is more.
pub(super) fn forget(tx: &Transaction<'_>, now_ms: i64) -> Result<bool, StorageError> {
    let more = purge(tx, now_ms - KEEP_MS)?;
    let more = usage::forget(tx, now_ms)? || more;
    Ok(heads::purge(tx, now_ms - KEEP_ENDS_MS)? || more)
}

/// Removes some rows that are older; whether there are more.
fn purge(tx: &Transaction<'_>, before_ms: i64) -> Result<bool, StorageError> {
    let mut more = false;
    for sql in [
        "DELETE FROM step WHERE (run, step) IN
           (SELECT run, step FROM step WHERE created_ms < ?1 ORDER BY created_ms LIMIT ?2)",
        "DELETE FROM run WHERE question IN
           (SELECT question FROM run WHERE created_ms < ?1 ORDER BY created_ms LIMIT ?2)",
        "DELETE FROM detached WHERE (user, question) IN
           (SELECT user, question FROM detached WHERE created_ms < ?1 ORDER BY created_ms LIMIT ?2)",
        "DELETE FROM finding WHERE (run, subagent) IN
           (SELECT run, subagent FROM finding WHERE created_ms < ?1 ORDER BY created_ms LIMIT ?2)",
        "DELETE FROM confirmation WHERE (run, step, nth) IN
           (SELECT run, step, nth FROM confirmation WHERE created_ms < ?1 ORDER BY created_ms LIMIT ?2)",
        "DELETE FROM call_seen WHERE (run, step, nth) IN
           (SELECT run, step, nth FROM call_seen WHERE created_ms < ?1 ORDER BY created_ms LIMIT ?2)",
        "DELETE FROM remade WHERE (run, step, request) IN
           (SELECT run, step, request FROM remade WHERE created_ms < ?1 ORDER BY created_ms LIMIT ?2)",
        "DELETE FROM said WHERE (run, step, seq) IN
           (SELECT run, step, seq FROM said WHERE created_ms < ?1 ORDER BY created_ms LIMIT ?2)",
        "DELETE FROM told WHERE rowid IN
           (SELECT rowid FROM told WHERE created_ms < ?1 ORDER BY created_ms LIMIT ?2)",
        "DELETE FROM record WHERE root IN
           (SELECT root FROM record WHERE created_ms < ?1 ORDER BY created_ms LIMIT ?2)",
    ] {
        let gone = tx.prepare_cached(sql)?.execute(params![before_ms, PURGE])?;
        more |= gone as i64 >= PURGE;
    }
    Ok(more)
}
