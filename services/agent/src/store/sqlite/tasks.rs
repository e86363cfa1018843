//! Tasks: who gave them, and what came of them.

use tg_storage::rusqlite::{Connection, Row, Transaction, params};
use tg_storage::{StorageError, query_rows};

use crate::store::tasks::{
    INTERRUPTED, KEEP_TASKS_MS, MOST_OPEN, MOST_TASKS, Opened, TaskEnd, TaskRow, TaskStatus,
    TasksOf,
};
use crate::store::{IsOver, Whose};

/// The columns of a task; [`read`] reads them.
macro_rules! told_of {
    () => {
        "SELECT workspace, id, kind, agent, session, tree, user, run, message, status, result, error,
           created_ms, started_ms, completed_ms
         FROM task WHERE printf('%016d/%s', created_ms, id) > ?1 AND "
    };
}

fn read(row: &Row<'_>) -> Result<TaskRow, tg_storage::rusqlite::Error> {
    Ok(TaskRow {
        workspace: row.get(0)?,
        id: row.get(1)?,
        kind: row.get(2)?,
        agent: row.get(3)?,
        session: row.get(4)?,
        tree: row.get(5)?,
        user: row.get(6)?,
        run: row.get(7)?,
        message: row.get(8)?,
        status: TaskStatus::read(&row.get::<_, String>(9)?),
        result: row.get(10)?,
        error: row.get(11)?,
        created_ms: row.get(12)?,
        started_ms: row.get(13)?,
        completed_ms: row.get(14)?,
    })
}

/// Ends the tasks that another process had open, and their runs.
pub(super) fn interrupt(
    tx: &Transaction<'_>,
    owner: &str,
    now_ms: i64,
) -> Result<(), StorageError> {
    tx.prepare_cached(
        "UPDATE detached SET cancelled = 1 WHERE run IN
           (SELECT run FROM task WHERE completed_ms = 0 AND owner <> ?1 AND run <> '')",
    )?
    .execute([owner])?;
    // A graph has no run of its own: those of its tasks are asked for by its id and a place.
    tx.prepare_cached(
        "UPDATE detached SET cancelled = 1 WHERE run IN
           (SELECT one.run FROM task JOIN detached AS one ON one.user = task.user
              AND one.question > task.id || '/' AND one.question < task.id || '0'
            WHERE task.completed_ms = 0 AND task.owner <> ?1 AND task.run = '' AND one.workspace = task.workspace)",
    )?
    .execute([owner])?;
    tx.prepare_cached(
        "UPDATE task SET status = 'failed', error = ?2, completed_ms = ?3
         WHERE completed_ms = 0 AND owner <> ?1",
    )?
    .execute(params![owner, INTERRUPTED, now_ms])?;
    Ok(())
}

/// Opens one, unless it is there.
pub(super) fn open(
    tx: &Transaction<'_>,
    task: &TaskRow,
    owner: &str,
    is_over: &IsOver,
) -> Result<Opened, StorageError> {
    if is_over.holds() {
        return Ok(Opened::NoWorkspace);
    }
    interrupt(tx, owner, task.created_ms)?;
    let count = |sql: &str| -> Result<i64, StorageError> {
        let mut count = tx.prepare_cached(sql)?;
        Ok(count.query_row([&task.workspace], |row| row.get(0))?)
    };
    let known = tx
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM task WHERE workspace = ?1 AND id = ?2)")?
        .query_row([&task.workspace, &task.id], |row| row.get::<_, bool>(0))?;
    if known {
        return Ok(Opened::Known);
    }
    if count("SELECT count(*) FROM task WHERE workspace = ?1 AND completed_ms = 0")? >= MOST_OPEN {
        return Ok(Opened::TooMany);
    }
    let above = count("SELECT count(*) FROM task WHERE workspace = ?1")? + 1 - MOST_TASKS;
    if above > 0 {
        tx.prepare_cached(
            "DELETE FROM task WHERE (workspace, id) IN (SELECT workspace, id FROM task
             WHERE workspace = ?1 AND completed_ms > 0 ORDER BY completed_ms LIMIT ?2)",
        )?
        .execute(params![task.workspace, above])?;
    }
    tx.prepare_cached(
        "INSERT INTO task (workspace, id, kind, agent, session, tree, user, message, owner, created_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?
    .execute(params![
        task.workspace,
        task.id,
        task.kind,
        task.agent,
        task.session,
        task.tree,
        task.user,
        task.message,
        owner,
        task.created_ms
    ])?;
    Ok(Opened::New)
}

/// Ends one that is open.
pub(super) fn end(
    tx: &Transaction<'_>,
    (workspace, id): (&str, &str),
    end: &TaskEnd,
    now_ms: i64,
) -> Result<bool, StorageError> {
    let mut update = tx.prepare_cached(
        "UPDATE task SET status = ?3, result = ?4, error = ?5, completed_ms = ?6
         WHERE workspace = ?1 AND id = ?2 AND completed_ms = 0",
    )?;
    let status = end.status.as_str();
    let ended = update.execute(params![
        workspace, id, status, end.result, end.error, now_ms
    ])?;
    Ok(ended > 0)
}

/// Tasks in the order in which they were given.
pub(super) fn list(
    conn: &Connection,
    of: &TasksOf,
    after: &str,
    most: usize,
) -> Result<Vec<TaskRow>, StorageError> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    match of {
        TasksOf::Whose(Whose::User(user)) => {
            let sql = concat!(told_of!(), "user = ?2 ORDER BY created_ms, id LIMIT ?3");
            query_rows(conn, sql, params![after, user, most], read)
        }
        TasksOf::Whose(Whose::Workspace(name)) => {
            let sql = concat!(
                told_of!(),
                "workspace = ?2 ORDER BY created_ms, id LIMIT ?3"
            );
            query_rows(conn, sql, params![after, name, most], read)
        }
        TasksOf::Tree {
            workspace,
            user,
            tree,
        } => {
            let sql = concat!(
                told_of!(),
                "workspace = ?2 AND user = ?3 AND tree = ?4 ORDER BY created_ms, id LIMIT ?5"
            );
            query_rows(conn, sql, params![after, workspace, user, tree, most], read)
        }
    }
}

/// Removes what belongs to a workspace.
pub(super) fn purge(tx: &Transaction<'_>, workspace: &str) -> Result<(), StorageError> {
    tx.prepare_cached("DELETE FROM task WHERE workspace = ?1")?
        .execute([workspace])?;
    Ok(())
}

/// A task that waits is under way from now on, as this run.
pub(super) fn start(
    tx: &Transaction<'_>,
    (workspace, id): (&str, &str),
    run: &str,
    now_ms: i64,
) -> Result<bool, StorageError> {
    let started = tx
        .prepare_cached(
            "UPDATE task SET status = 'running', run = ?3, started_ms = ?4
             WHERE workspace = ?1 AND id = ?2 AND status = 'pending'",
        )?
        .execute(params![workspace, id, run, now_ms])?;
    Ok(started > 0)
}

/// Removes what is over for too long.
pub(super) fn prune(tx: &Transaction<'_>, now_ms: i64) -> Result<(), StorageError> {
    tx.prepare_cached("DELETE FROM task WHERE completed_ms > 0 AND completed_ms <= ?1")?
        .execute([now_ms - KEEP_TASKS_MS])?;
    Ok(())
}
