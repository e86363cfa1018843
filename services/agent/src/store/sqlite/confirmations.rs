//! What users are asked before tools are used, and what they answer.

use tg_storage::rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use tg_storage::{StorageError, query_rows};

use crate::engine::confirmation::Answer;
use crate::store::{Asking, CallAt, Confirmation, Replied, Whose};

/// Most questions of a workspace that are open.
const OPEN: i64 = 128;
/// Most of them of one user.
const OPEN_OF_USER: i64 = OPEN / 8;

fn read(row: &Row<'_>) -> Result<Confirmation, tg_storage::rusqlite::Error> {
    Ok(Confirmation {
        until_ms: row.get(0)?,
        answer: row.get::<_, Option<i64>>(1)?.map(Answer::of_number),
        by: row.get(2)?,
        used: row.get(3)?,
    })
}

/// What stands of a call.
pub(super) fn of(
    conn: &Connection,
    run: &str,
    (step, nth): CallAt,
) -> Result<Option<Confirmation>, StorageError> {
    let sql = "SELECT until_ms, answer, who, used FROM confirmation
               WHERE run = ?1 AND step = ?2 AND nth = ?3";
    let mut query = conn.prepare_cached(sql)?;
    Ok(query.query_row(params![run, step, nth], read).optional()?)
}

/// What stands of a run, by step and call.
pub(super) fn all(
    conn: &Connection,
    run: &str,
) -> Result<Vec<(CallAt, Confirmation)>, StorageError> {
    let sql = "SELECT until_ms, answer, who, used, step, nth FROM confirmation WHERE run = ?1";
    query_rows(conn, sql, [run], |row| {
        Ok(((row.get(4)?, row.get(5)?), read(row)?))
    })
}

/// Notes that the user is asked, unless that is noted; where too many are open, that nobody is.
pub(super) fn ask(
    tx: &Transaction<'_>,
    (run, (step, nth)): (&str, CallAt),
    asking: &Asking,
    now_ms: i64,
) -> Result<Option<Confirmation>, StorageError> {
    tx.prepare_cached(
        "INSERT OR IGNORE INTO confirmation
           (run, step, nth, workspace, asked, until_ms, answer, created_ms, user)
         SELECT ?1, ?2, ?9, ?3, ?4, ?5,
           CASE WHEN count(*) >= ?6 OR count(*) FILTER (WHERE user = ?10 AND user <> '') >= ?11 THEN ?7 END, ?8, ?10
         FROM confirmation WHERE workspace = ?3 AND answer IS NULL AND until_ms > ?8",
    )?
    .execute(params![
        run,
        step,
        asking.workspace,
        asking.id,
        asking.until_ms,
        OPEN,
        Answer::TooMany.number(),
        now_ms,
        nth,
        asking.user,
        OPEN_OF_USER
    ])?;
    of(tx, run, (step, nth))
}

/// Whoever asked for a run answers what it asks, or one of its subagents, or one of theirs. A bare answer to a run that asked
/// before may be meant for the earlier question, so only the first one takes it.
pub(super) fn reply(
    tx: &Transaction<'_>,
    run: &str,
    asked: &str,
    (answer, by): (Answer, &str),
    now_ms: i64,
) -> Result<Replied, StorageError> {
    // As `run::fan_in` names them; `0` follows upon `/`.
    let mut open = tx.prepare_cached(
        "WITH RECURSIVE one(run) AS (
           SELECT ?1 UNION SELECT run.run FROM one JOIN run
             ON run.question > 'subagent/' || one.run || '/' AND run.question < 'subagent/' || one.run || '0')
         SELECT run, step, nth, answer IS NULL AND until_ms > ?3 AS open FROM confirmation
         WHERE run IN (SELECT run FROM one)
           AND (asked = ?2 OR ?2 = '') AND answer IS NOT ?4 ORDER BY open DESC LIMIT 2",
    )?;
    let refused = Answer::TooMany.number();
    let rows = open.query_map(params![run, asked, now_ms, refused], |row| {
        Ok((row.get(0)?, (row.get(1)?, row.get(2)?), row.get(3)?))
    })?;
    let rows: Vec<(String, CallAt, bool)> = rows.collect::<Result<_, _>>()?;
    let (run, (step, nth)) = match rows.as_slice() {
        [(run, at, true)] => (run, at),
        [(_, _, true), ..] => return Ok(Replied::Several),
        _ => return Ok(Replied::NothingAsked),
    };
    tx.prepare_cached(
        "UPDATE confirmation SET answer = ?3, who = ?4
         WHERE run = ?1 AND step = ?2 AND nth = ?5",
    )?
    .execute(params![run, step, answer.number(), by, nth])?;
    Ok(Replied::Noted)
}

/// The time for an answer is over; one that came stands.
pub(super) fn close(
    tx: &Transaction<'_>,
    run: &str,
    (step, nth): CallAt,
) -> Result<(), StorageError> {
    tx.prepare_cached(
        "UPDATE confirmation SET answer = ?3
         WHERE run = ?1 AND step = ?2 AND nth = ?4 AND answer IS NULL",
    )?
    .execute(params![run, step, Answer::Unanswered.number(), nth])?;
    Ok(())
}

/// The tool is about to be used.
pub(super) fn used(
    tx: &Transaction<'_>,
    run: &str,
    (step, nth): CallAt,
) -> Result<(), StorageError> {
    tx.prepare_cached(
        "UPDATE confirmation SET used = 1 WHERE run = ?1 AND step = ?2 AND nth = ?3",
    )?
    .execute(params![run, step, nth])?;
    Ok(())
}

/// The run that a question began, if it is not over.
pub(super) fn run_of(
    conn: &Connection,
    whose: &Whose,
    question: &str,
) -> Result<Option<String>, StorageError> {
    let known = super::detached::of_question(conn, whose, question)?;
    Ok(known.filter(|run| !run.over).map(|run| run.run))
}
