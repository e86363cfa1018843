//! Rows of the agents of a workspace.

use tg_collections::Quota;
use tg_storage::StorageError;
use tg_storage::rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::{room, session};
use crate::engine::cursor::Key;
use crate::store::{Agent, AgentRow, Page};

const COLUMNS: &str = "id, body, created, updated";

fn read(row: &Row<'_>) -> tg_storage::rusqlite::Result<Agent> {
    Ok(Agent {
        id: row.get(0)?,
        body: row.get(1)?,
        created: row.get(2)?,
        updated: row.get(3)?,
    })
}

pub(super) fn add(
    tx: &Transaction<'_>,
    new: &AgentRow,
    quota: &Quota,
) -> Result<Option<Agent>, StorageError> {
    let by: Option<String> = tx
        .prepare_cached("SELECT request FROM agent WHERE id = ?1")?
        .query_row([&new.id], |row| row.get(0))
        .optional()?;
    match by {
        Some(request) if request != new.request => return Ok(None),
        Some(_) => {}
        None => {
            room::check(tx, quota, 0, room::row(&[&new.body]))?;
            // Later ones are later: two of one millisecond would have no order.
            tx.prepare_cached(
                "INSERT INTO agent (id, request, template, body, created, updated)
                 SELECT ?1, ?2, ?3, ?4, at, at FROM
                 (SELECT max(?5, coalesce((SELECT max(created) + 1 FROM agent), 0)) AS at)",
            )?
            .execute(params![new.id, new.request, new.template, new.body, new.at])?;
        }
    }
    get(tx, &new.id)
}

pub(super) fn is_seeded(conn: &Connection) -> Result<bool, StorageError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM seeded)";
    Ok(conn.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

pub(super) fn seed(tx: &Transaction<'_>, agents: &[AgentRow]) -> Result<(), StorageError> {
    if is_seeded(tx)? {
        return Ok(());
    }
    for new in agents {
        add(tx, new, &Quota::UNLIMITED)?;
    }
    tx.prepare_cached("INSERT INTO seeded (number) VALUES (1)")?
        .execute([])?;
    Ok(())
}

pub(super) fn get(conn: &Connection, id: &str) -> Result<Option<Agent>, StorageError> {
    let sql = format!("SELECT {COLUMNS} FROM agent WHERE id = ?1");
    Ok(conn
        .prepare_cached(&sql)?
        .query_row([id], read)
        .optional()?)
}

pub(super) fn list(
    conn: &Connection,
    after: Option<&Key>,
    most: usize,
    bytes: usize,
) -> Result<Page<Agent>, StorageError> {
    let sql = format!("SELECT {COLUMNS} FROM agent WHERE created > ?1 ORDER BY created LIMIT ?2");
    let after = after.map_or(i64::MIN, |key| key.created);
    // One more tells whether there are more.
    let limit = i64::try_from(most.saturating_add(1)).unwrap_or(i64::MAX);
    let mut query = conn.prepare_cached(&sql)?;
    let mut rows = query.query(params![after, limit])?;
    let (mut page, mut room) = (Page::default(), bytes);
    while let Some(row) = rows.next()? {
        if page.items.len() == most || room == 0 {
            page.more = true;
            break;
        }
        let agent = read(row)?;
        room = room.saturating_sub(agent.body.len());
        page.items.push(agent);
    }
    Ok(page)
}

pub(super) fn change(
    tx: &Transaction<'_>,
    id: &str,
    body: &str,
    at: i64,
    quota: &Quota,
) -> Result<Option<Agent>, StorageError> {
    let Some(known) = get(tx, id)? else {
        return Ok(None);
    };
    let more = body.len().saturating_sub(known.body.len());
    room::check(tx, quota, 0, i64::try_from(more).unwrap_or(i64::MAX))?;
    tx.prepare_cached("UPDATE agent SET body = ?2, updated = max(updated + 1, ?3) WHERE id = ?1")?
        .execute(params![id, body, at])?;
    get(tx, id)
}

pub(super) fn remove(tx: &Transaction<'_>, id: &str, request: &str) -> Result<bool, StorageError> {
    room::once(tx, request, id, || {
        session::delete_with(tx, id)?;
        let gone = tx
            .prepare_cached("DELETE FROM agent WHERE id = ?1")?
            .execute([id])?;
        Ok(gone > 0)
    })
}
