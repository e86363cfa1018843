//! Rows of sessions.

use tg_collections::Quota;
use tg_schemas::operations::CompactStrategy;
use tg_storage::rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use tg_storage::{StorageError, query_rows};

use super::{part, room};
use crate::engine::cursor::Key;
use crate::store::{NewSession, Owner, Session, Surface};

const COLUMNS: &str = "id, surface, agent, user, title, knowledge, strategy, keep, mask, messages, live, parent, \
                       successor, loop_window, created, updated, archived, characters, request, said_bytes";

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
    let knowledge: String = row.get(5)?;
    Ok(Session {
        id: row.get(0)?,
        owner: Owner {
            surface: Surface::parse(&row.get::<_, String>(1)?),
            agent: row.get(2)?,
            user: row.get(3)?,
        },
        title: row.get(4)?,
        knowledge: serde_json::from_slice(knowledge.as_bytes()).unwrap_or_default(),
        strategy: strategy(&row.get::<_, String>(6)?),
        keep: row.get(7)?,
        mask: row.get(8)?,
        messages: row.get(9)?,
        live: row.get(10)?,
        parent: row.get(11)?,
        successor: row.get(12)?,
        loop_window: row.get(13)?,
        created: row.get(14)?,
        updated: row.get(15)?,
        archived: row.get(16)?,
        characters: row.get(17)?,
        request: row.get(18)?,
        said_bytes: row.get(19)?,
    })
}

/// How a list of collections is kept.
fn listed(knowledge: &[String]) -> String {
    serde_json::to_string(knowledge).unwrap_or_else(|_| "[]".to_owned())
}

/// Bytes that a new session counts.
fn size(new: &NewSession) -> i64 {
    room::row(&[
        new.title.as_deref().unwrap_or_default(),
        &listed(&new.knowledge),
    ])
}

/// Adds a session where the workspace may keep one more, with so many bytes of messages.
pub(super) fn create(
    tx: &Transaction<'_>,
    new: &NewSession,
    quota: &Quota,
    messages: i64,
) -> Result<Session, StorageError> {
    if let Some(known) = get(tx, &new.id)? {
        return Ok(known);
    }
    room::check(tx, quota, 1, size(new).saturating_add(messages))?;
    tx.prepare_cached(
        "INSERT INTO session (id, surface, agent, user, title, knowledge, strategy, keep, mask, created, updated,
                              request, bytes)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10, ?11, ?12)",
    )?
    .execute(params![
        new.id,
        new.owner.surface.as_str(),
        new.owner.agent,
        new.owner.user,
        new.title,
        listed(&new.knowledge),
        text(new.strategy),
        new.keep,
        new.mask,
        new.at,
        new.request,
        size(new)
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

/// The newest first. In the doors of users an empty one owns nothing: rows of older stores may have it.
pub(super) fn list(
    conn: &Connection,
    owner: &Owner,
    after: Option<&Key>,
    most: usize,
) -> Result<Vec<Session>, StorageError> {
    if owner.user.is_empty() && owner.surface == Surface::Named {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT {COLUMNS} FROM session WHERE surface = ?1 AND agent = ?2 AND user = ?3
           AND (?4 IS NULL OR created < ?4 OR (created = ?4 AND id > ?5))
         ORDER BY created DESC, id LIMIT ?6"
    );
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let (created, id) = (after.map(|key| key.created), after.map(|key| &key.id));
    let surface = owner.surface.as_str();
    let bound = params![surface, owner.agent, owner.user, created, id, most];
    query_rows(conn, &sql, bound, read)
}

pub(super) fn rename(
    tx: &Transaction<'_>,
    id: &str,
    title: Option<&str>,
    knowledge: &[String],
) -> Result<Option<Session>, StorageError> {
    tx.prepare_cached(
        "UPDATE session SET title = ?2, knowledge = ?3,
                            bytes = bytes + length(CAST(?3 AS BLOB)) - length(CAST(knowledge AS BLOB))
         WHERE id = ?1",
    )?
    .execute(params![id, title, listed(knowledge)])?;
    get(tx, id)
}

/// Gives a session of this user in which nothing was said to another agent.
pub(super) fn give(
    tx: &Transaction<'_>,
    id: &str,
    to: &Owner,
) -> Result<Option<Session>, StorageError> {
    tx.prepare_cached(
        "UPDATE session SET agent = ?2
         WHERE id = ?1 AND surface = ?3 AND user = ?4 AND messages = 0 AND archived IS NULL",
    )?
    .execute(params![id, to.agent, to.surface.as_str(), to.user])?;
    get(tx, id)
}

/// Takes a collection from all conversations.
pub(super) fn forget_collection(
    tx: &Transaction<'_>,
    collection: &str,
) -> Result<usize, StorageError> {
    let changed = tx
        .prepare_cached(
            "UPDATE session SET knowledge =
               (SELECT json_group_array(value) FROM json_each(session.knowledge) WHERE value <> ?1)
             WHERE surface = ?2
               AND EXISTS (SELECT 1 FROM json_each(session.knowledge) WHERE value = ?1)",
        )?
        .execute(params![collection, Surface::Conversation.as_str()])?;
    Ok(changed)
}

/// Deletes the conversations with an agent.
pub(super) fn delete_with(tx: &Transaction<'_>, agent: &str) -> Result<(), StorageError> {
    let surface = Surface::Conversation.as_str();
    let bound = params![surface, agent];
    let texts = part::of(tx, "s.surface = ?1 AND s.agent = ?2", bound)?;
    tx.prepare_cached("DELETE FROM session WHERE surface = ?1 AND agent = ?2")?
        .execute(bound)?;
    part::forget_unused(tx, &texts)
}

pub(super) fn delete(tx: &Transaction<'_>, id: &str) -> Result<bool, StorageError> {
    for column in ["parent", "successor"] {
        let sql = format!("UPDATE session SET {column} = NULL WHERE {column} = ?1");
        tx.prepare_cached(&sql)?.execute([id])?;
    }
    tx.prepare_cached("UPDATE summary SET successor = NULL WHERE successor = ?1")?
        .execute([id])?;
    let texts = part::of(tx, "s.id = ?1", [id])?;
    let gone = tx
        .prepare_cached("DELETE FROM session WHERE id = ?1")?
        .execute([id])?;
    part::forget_unused(tx, &texts)?;
    Ok(gone > 0)
}

/// Deletes a session in which nothing was said.
pub(super) fn delete_empty(tx: &Transaction<'_>, id: &str) -> Result<bool, StorageError> {
    match get(tx, id)?.is_some_and(|found| found.messages == 0) {
        true => delete(tx, id),
        false => Ok(false),
    }
}
