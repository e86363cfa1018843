//! Rows of sessions.

use tg_schemas::operations::CompactStrategy;
use tg_storage::rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use tg_storage::{StorageError, query_rows};

use super::part;
use crate::engine::cursor::Key;
use crate::store::{NewSession, Owner, Session};

const COLUMNS: &str = "id, agent, user, title, strategy, keep, mask, messages, live, parent, successor, loop_window, \
                       created, updated, archived";

/// How a strategy is kept.
fn text(strategy: CompactStrategy) -> &'static str {
    match strategy {
        CompactStrategy::Auto => "auto",
        CompactStrategy::Manual => "manual",
        CompactStrategy::Off => "off",
    }
}

fn strategy(text: &str) -> CompactStrategy {
    match text {
        "manual" => CompactStrategy::Manual,
        "off" => CompactStrategy::Off,
        _ => CompactStrategy::Auto,
    }
}

fn read(row: &Row<'_>) -> tg_storage::rusqlite::Result<Session> {
    Ok(Session {
        id: row.get(0)?,
        owner: Owner {
            agent: row.get(1)?,
            user: row.get(2)?,
        },
        title: row.get(3)?,
        strategy: strategy(&row.get::<_, String>(4)?),
        keep: row.get(5)?,
        mask: row.get(6)?,
        messages: row.get(7)?,
        live: row.get(8)?,
        parent: row.get(9)?,
        successor: row.get(10)?,
        loop_window: row.get(11)?,
        created: row.get(12)?,
        updated: row.get(13)?,
        archived: row.get(14)?,
    })
}

pub(super) fn create(tx: &Transaction<'_>, new: &NewSession) -> Result<Session, StorageError> {
    tx.prepare_cached(
        "INSERT INTO session (id, agent, user, title, strategy, keep, mask, created, updated)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8) ON CONFLICT (id) DO NOTHING",
    )?
    .execute(params![
        new.id,
        new.owner.agent,
        new.owner.user,
        new.title,
        text(new.strategy),
        new.keep,
        new.mask,
        new.at
    ])?;
    get(tx, &new.id)?.ok_or(StorageError::Missing)
}

pub(super) fn get(conn: &Connection, id: &str) -> Result<Option<Session>, StorageError> {
    let sql = format!("SELECT {COLUMNS} FROM session WHERE id = ?1");
    Ok(conn
        .prepare_cached(&sql)?
        .query_row([id], read)
        .optional()?)
}

/// The newest first. An empty user owns nothing: rows of older stores may have one.
pub(super) fn list(
    conn: &Connection,
    owner: &Owner,
    after: Option<&Key>,
    most: usize,
) -> Result<Vec<Session>, StorageError> {
    if owner.user.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT {COLUMNS} FROM session WHERE agent = ?1 AND user = ?2
           AND (?3 IS NULL OR created < ?3 OR (created = ?3 AND id > ?4))
         ORDER BY created DESC, id LIMIT ?5"
    );
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let (created, id) = (after.map(|key| key.created), after.map(|key| &key.id));
    let bound = params![owner.agent, owner.user, created, id, most];
    query_rows(conn, &sql, bound, read)
}

pub(super) fn delete(tx: &Transaction<'_>, id: &str) -> Result<bool, StorageError> {
    for column in ["parent", "successor"] {
        let sql = format!("UPDATE session SET {column} = NULL WHERE {column} = ?1");
        tx.prepare_cached(&sql)?.execute([id])?;
    }
    let gone = tx
        .prepare_cached("DELETE FROM session WHERE id = ?1")?
        .execute([id])?;
    if gone > 0 {
        part::forget_unused(tx)?;
    }
    Ok(gone > 0)
}
