//! Rows of what a workspace says of its sessions, and of what users said of themselves.

use std::collections::BTreeMap;

use tg_storage::rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use tg_storage::{StorageError, query_rows};

use super::room;
use crate::store::{MemoryRow, Unsearched};

pub(super) fn all(conn: &Connection) -> Result<BTreeMap<String, String>, StorageError> {
    let pair = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let rows = query_rows(conn, "SELECT key, value FROM setting", params![], pair)?;
    Ok(rows.into_iter().collect())
}

pub(super) fn set(
    tx: &Transaction<'_>,
    changes: &BTreeMap<String, Option<String>>,
    at: i64,
) -> Result<(), StorageError> {
    for (key, value) in changes {
        match value {
            Some(value) => tx
                .prepare_cached(
                    "INSERT INTO setting (key, value, at) VALUES (?1, ?2, ?3)
                     ON CONFLICT (key) DO UPDATE SET value = ?2, at = ?3",
                )?
                .execute(params![key, value, at])?,
            None => tx
                .prepare_cached("DELETE FROM setting WHERE key = ?1")?
                .execute([key])?,
        };
    }
    Ok(())
}

fn fact(row: &Row<'_>) -> tg_storage::rusqlite::Result<MemoryRow> {
    Ok(MemoryRow {
        id: row.get(0)?,
        user: row.get(1)?,
        subject: row.get(2)?,
        predicate: row.get(3)?,
        object: row.get(4)?,
        agent: row.get(5)?,
        session: row.get(6)?,
        message: row.get(7)?,
        at: row.get(8)?,
    })
}

/// Few messages are to be searched at any time, so that table is the one that is read through.
pub(super) fn unsearched(
    conn: &Connection,
    session: &str,
    most: usize,
) -> Result<Vec<Unsearched>, StorageError> {
    let sql = "SELECT s.id, m.seq, m.id, coalesce(m.content, part.content, ''), u.failed
               FROM unsearched u CROSS JOIN session s ON s.number = u.session
                 JOIN message m ON m.session = u.session AND m.seq = u.seq
                 LEFT JOIN part ON part.hash = m.part
               WHERE s.id = ?1 OR s.successor = ?1 ORDER BY m.at LIMIT ?2";
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let read = |row: &Row<'_>| {
        Ok(Unsearched {
            session: row.get(0)?,
            seq: row.get(1)?,
            id: row.get(2)?,
            content: row.get(3)?,
            failed: row.get(4)?,
        })
    };
    query_rows(conn, sql, params![session, most], read)
}

/// The message is not searched again.
fn searched(tx: &Transaction<'_>, (session, seq): (&str, i64)) -> Result<(), StorageError> {
    tx.prepare_cached(
        "DELETE FROM unsearched WHERE session = (SELECT number FROM session WHERE id = ?1) AND seq = ?2",
    )?
    .execute(params![session, seq])?;
    Ok(())
}

pub(super) fn search_failed(
    tx: &Transaction<'_>,
    (session, seq): (&str, i64),
    most: i64,
) -> Result<(), StorageError> {
    let failed: Option<i64> = tx
        .prepare_cached(
            "UPDATE unsearched SET failed = failed + 1
             WHERE session = (SELECT number FROM session WHERE id = ?1) AND seq = ?2 RETURNING failed",
        )?
        .query_row(params![session, seq], |row| row.get(0))
        .optional()?;
    match failed.is_some_and(|failed| failed >= most) {
        true => searched(tx, (session, seq)),
        false => Ok(()),
    }
}

pub(super) fn remember(
    tx: &Transaction<'_>,
    message: (&str, i64),
    facts: &[MemoryRow],
    most: usize,
) -> Result<(), StorageError> {
    searched(tx, message)?;
    for one in facts {
        tx.prepare_cached(
            "INSERT INTO memory (id, user, subject, predicate, object, agent, session, message, at)
             SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, max(?9, coalesce((SELECT max(at) + 1 FROM memory), 0))
             ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            one.id,
            one.user,
            one.subject,
            one.predicate,
            one.object,
            one.agent,
            one.session,
            one.message,
            one.at
        ])?;
    }
    if let Some(one) = facts.first() {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        tx.prepare_cached(
            "DELETE FROM memory WHERE user = ?1 AND at <=
               (SELECT at FROM memory WHERE user = ?1 ORDER BY at DESC LIMIT 1 OFFSET ?2)",
        )?
        .execute(params![one.user, most])?;
    }
    Ok(())
}

pub(super) fn memories(
    conn: &Connection,
    user: &str,
    after: i64,
    most: usize,
) -> Result<Vec<MemoryRow>, StorageError> {
    let sql = "SELECT id, user, subject, predicate, object, agent, session, message, at FROM memory
               WHERE user = ?1 AND at > ?2 ORDER BY at LIMIT ?3";
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    query_rows(conn, sql, params![user, after, most], fact)
}

pub(super) fn forget(
    tx: &Transaction<'_>,
    user: &str,
    id: &str,
    request: &str,
) -> Result<bool, StorageError> {
    room::once(tx, request, id, || {
        let gone = tx
            .prepare_cached("DELETE FROM memory WHERE user = ?1 AND id = ?2")?
            .execute([user, id])?;
        Ok(gone > 0)
    })
}
