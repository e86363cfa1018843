//! Runs that go on without their callers.

use tg_schemas::WorkspaceKey;
use tg_schemas::msg::DetachedRun;
use tg_storage::rusqlite::{Connection, Transaction, params};
use tg_storage::{StorageError, query_rows};

use crate::store::Caller;

/// Detached runs that are under way: not over, not cancelled, in time.
macro_rules! under_way {
    () => {
        "cancelled = 0 AND deadline_ms > ?3 AND NOT EXISTS
           (SELECT 1 FROM step WHERE step.run = detached.run AND done = 2)"
    };
}

/// Notes for whom a run goes on without its caller.
pub(super) fn enter(
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

/// Those of a user that are under way, by their questions.
pub(super) fn list(
    conn: &Connection,
    user: &str,
    after: &str,
    most: usize,
    now_ms: i64,
) -> Result<Vec<DetachedRun>, StorageError> {
    let sql = concat!(
        "SELECT question, workspace, flow, request, created_ms FROM detached
         WHERE user = ?1 AND question > ?2 AND ",
        under_way!(),
        " ORDER BY question LIMIT ?4"
    );
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    query_rows(conn, sql, params![user, after, now_ms, most], |row| {
        Ok(DetachedRun {
            id: row.get(0)?,
            workspace: row.get(1)?,
            flow: row.get(2)?,
            request_id: row.get(3)?,
            started_ms: row.get(4)?,
        })
    })
}

/// Cancels one that is under way; `false` if none is.
pub(super) fn cancel(
    tx: &Transaction<'_>,
    user: &str,
    question: &str,
    now_ms: i64,
) -> Result<bool, StorageError> {
    let mut cancel = tx.prepare_cached(concat!(
        "UPDATE detached SET cancelled = 1 WHERE user = ?1 AND question = ?2 AND ",
        under_way!()
    ))?;
    Ok(cancel.execute(params![user, question, now_ms])? > 0)
}

/// Whether a run was cancelled.
pub(super) fn is_cancelled(conn: &Connection, run: &str) -> Result<bool, StorageError> {
    let mut query = conn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM detached WHERE run = ?1 AND cancelled = 1)",
    )?;
    Ok(query.query_row([run], |row| row.get(0))?)
}
