//! Who asked for runs: those that go on without their callers, and those that end with them.

use tg_schemas::WorkspaceKey;
use tg_schemas::msg::DetachedRun;
use tg_storage::rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use tg_storage::{StorageError, query_rows};

use crate::store::{Caller, KnownRun, Whose};

/// Runs that are under way: not over, not cancelled, in time.
macro_rules! under_way {
    () => {
        "cancelled = 0 AND deadline_ms > ?3 AND NOT EXISTS
           (SELECT 1 FROM step WHERE step.run = detached.run AND done = 2)"
    };
}

/// The columns of a run; [`read`] reads them.
macro_rules! told_of {
    () => {
        "SELECT question, run, workspace, user, flow, request, cancelled, deadline_ms, created_ms,
           goes_on, grace_ms, left_ms, asker_gone, ends,
           EXISTS (SELECT 1 FROM step WHERE step.run = detached.run AND done = 2)
         FROM detached WHERE "
    };
}

fn read(row: &Row<'_>) -> Result<KnownRun, tg_storage::rusqlite::Error> {
    Ok(KnownRun {
        run: row.get(1)?,
        workspace: row.get(2)?,
        caller: Caller {
            question: row.get(0)?,
            user: row.get(3)?,
            flow: row.get(4)?,
            request: row.get(5)?,
            deadline_ms: row.get(7)?,
            goes_on: row.get(9)?,
            grace_ms: row.get(10)?,
        },
        cancelled: row.get(6)?,
        started_ms: row.get(8)?,
        left_ms: row.get(11)?,
        asker_gone: row.get(12)?,
        ends: row
            .get::<_, Option<i64>>(13)?
            .and_then(|ends| u64::try_from(ends).ok()),
        over: row.get(14)?,
    })
}

/// Runs of somebody, by their questions.
pub(super) fn known(
    conn: &Connection,
    whose: &Whose,
    after: &str,
    most: usize,
) -> Result<Vec<KnownRun>, StorageError> {
    let (sql, name) = match whose {
        Whose::User(user) => (
            concat!(
                told_of!(),
                "user = ?1 AND question > ?2 ORDER BY question LIMIT ?3"
            ),
            user,
        ),
        Whose::Workspace(name) => (
            concat!(
                told_of!(),
                "workspace = ?1 AND question > ?2 ORDER BY question LIMIT ?3"
            ),
            name,
        ),
    };
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    query_rows(conn, sql, params![name, after, most], read)
}

/// One of them.
pub(super) fn of_question(
    conn: &Connection,
    whose: &Whose,
    question: &str,
) -> Result<Option<KnownRun>, StorageError> {
    let (sql, name) = match whose {
        Whose::User(user) => (concat!(told_of!(), "user = ?1 AND question = ?2"), user),
        Whose::Workspace(name) => (
            concat!(told_of!(), "workspace = ?1 AND question = ?2"),
            name,
        ),
    };
    let mut query = conn.prepare_cached(sql)?;
    Ok(query
        .query_row([name.as_str(), question], read)
        .optional()?)
}

/// Who asked for a run.
pub(super) fn asker(conn: &Connection, run: &str) -> Result<Option<KnownRun>, StorageError> {
    let mut query = conn.prepare_cached(concat!(told_of!(), "run = ?1"))?;
    Ok(query.query_row([run], read).optional()?)
}

/// Notes since when nobody listens, and that who asked is gone for good.
pub(super) fn left(
    tx: &Transaction<'_>,
    run: &str,
    since_ms: Option<i64>,
    asker: bool,
) -> Result<(), StorageError> {
    tx.prepare_cached(
        "UPDATE detached SET left_ms = ?2, asker_gone = asker_gone OR ?3 WHERE run = ?1",
    )?
    .execute(params![run, since_ms, asker])?;
    Ok(())
}

/// Cancels a run that is under way, if nobody has listened since then, or longer; `false` if it is not so.
pub(super) fn cancel_left(
    tx: &Transaction<'_>,
    run: &str,
    since_ms: i64,
    now_ms: i64,
) -> Result<bool, StorageError> {
    let mut cancel = tx.prepare_cached(concat!(
        "UPDATE detached SET cancelled = 1 WHERE run = ?1 AND left_ms <= ?2 AND ",
        under_way!()
    ))?;
    Ok(cancel.execute(params![run, since_ms, now_ms])? > 0)
}

/// Notes the number behind the last part of a run; the first one stands.
pub(super) fn ended(tx: &Transaction<'_>, run: &str, ends: u64) -> Result<(), StorageError> {
    tx.prepare_cached("UPDATE detached SET ends = ?2 WHERE run = ?1 AND ends IS NULL")?
        .execute(params![run, i64::try_from(ends).unwrap_or(i64::MAX)])?;
    Ok(())
}

/// Notes who asked for a run.
pub(super) fn enter(
    tx: &Transaction<'_>,
    caller: &Caller,
    run: &str,
    workspace: &str,
    now_ms: i64,
) -> Result<(), StorageError> {
    tx.prepare_cached(
        "INSERT OR REPLACE INTO detached
           (user, question, run, workspace, flow, request, deadline_ms, created_ms, goes_on, grace_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?
    .execute(params![
        caller.user,
        caller.question,
        run,
        workspace,
        caller.flow,
        caller.request,
        caller.deadline_ms,
        now_ms,
        caller.goes_on,
        caller.grace_ms
    ])?;
    Ok(())
}

/// Those of a user that go on without their caller and are under way, by their questions.
pub(super) fn list(
    conn: &Connection,
    user: &str,
    after: &str,
    most: usize,
    now_ms: i64,
) -> Result<Vec<DetachedRun>, StorageError> {
    let sql = concat!(
        "SELECT question, workspace, flow, request, created_ms FROM detached
         WHERE user = ?1 AND question > ?2 AND goes_on = 1 AND ",
        under_way!(),
        " ORDER BY question LIMIT ?4"
    );
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    query_rows(conn, sql, params![user, after, now_ms, most], |row| {
        let key = WorkspaceKey::parse(&row.get::<_, String>(1)?);
        Ok(DetachedRun {
            id: row.get(0)?,
            workspace: key.name().to_owned(),
            generation: key.generation(),
            flow: row.get(2)?,
            request_id: row.get(3)?,
            started_ms: row.get(4)?,
            ..DetachedRun::default()
        })
    })
}

/// Cancels one that is under way; `false` if none is.
pub(super) fn cancel(
    tx: &Transaction<'_>,
    whose: &Whose,
    question: &str,
    now_ms: i64,
) -> Result<bool, StorageError> {
    let (sql, name) = match whose {
        Whose::User(user) => (
            concat!(
                "UPDATE detached SET cancelled = 1 WHERE user = ?1 AND question = ?2 AND ",
                under_way!()
            ),
            user,
        ),
        Whose::Workspace(name) => (
            concat!(
                "UPDATE detached SET cancelled = 1 WHERE workspace = ?1 AND question = ?2 AND ",
                under_way!()
            ),
            name,
        ),
    };
    let mut cancel = tx.prepare_cached(sql)?;
    Ok(cancel.execute(params![name, question, now_ms])? > 0)
}
