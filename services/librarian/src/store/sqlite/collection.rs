//! Rows of collections, and of deletions that stores have not confirmed.

use tg_storage::rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use tg_storage::{StorageError, query_rows};

use crate::store::collections::{Known, Life, Tombstone};
use crate::store::runs::Target;

pub(crate) fn get(
    conn: &Connection,
    workspace: &str,
    id: &str,
) -> Result<Option<Known>, StorageError> {
    let mut query = conn.prepare_cached(
        "SELECT incarnation, deleted, labelled FROM collection WHERE workspace = ?1 AND id = ?2",
    )?;
    let known = query.query_row([workspace, id], |row| {
        Ok(Known {
            generation: row.get(0)?,
            life: match row.get::<_, i64>(1)? {
                0 => Life::Live,
                1 => Life::Noted,
                _ => Life::Gone,
            },
            labelled: row.get(2)?,
        })
    });
    Ok(known.optional()?)
}

/// Remembers a name.
pub(crate) fn set(
    tx: &Transaction<'_>,
    workspace: &str,
    id: &str,
    generation: i64,
    life: Life,
) -> Result<(), StorageError> {
    tx.prepare_cached(
        "INSERT INTO collection (workspace, id, incarnation, deleted, labelled)
         VALUES (?1, ?2, ?3, ?4, -1)
         ON CONFLICT (workspace, id) DO UPDATE SET incarnation = ?3, deleted = ?4",
    )?
    .execute(params![workspace, id, generation, life as i64])?;
    Ok(())
}

/// The generation that a run goes into has the names of the vocabulary.
pub(crate) fn set_labelled(tx: &Transaction<'_>, of: &Target) -> Result<(), StorageError> {
    tx.prepare_cached("UPDATE collection SET labelled = ?3 WHERE workspace = ?1 AND id = ?2")?
        .execute(params![of.workspace, of.collection, of.generation])?;
    Ok(())
}

/// Stores are to drop generations up to one.
pub(crate) fn bury(
    tx: &Transaction<'_>,
    workspace: &str,
    id: &str,
    generation: i64,
    stores: impl Iterator<Item = &'static str>,
) -> Result<(), StorageError> {
    let mut insert = tx.prepare_cached(
        "INSERT INTO tombstone (workspace, collection, store, incarnation) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (workspace, collection, store)
         DO UPDATE SET incarnation = max(incarnation, ?4)",
    )?;
    for store in stores {
        insert.execute(params![workspace, id, store, generation])?;
    }
    Ok(())
}

/// A store confirmed.
pub(crate) fn confirmed(tx: &Transaction<'_>, stone: &Tombstone) -> Result<(), StorageError> {
    tx.prepare_cached(
        "DELETE FROM tombstone WHERE workspace = ?1 AND collection = ?2 AND store = ?3
         AND incarnation <= ?4",
    )?
    .execute(params![
        stone.workspace,
        stone.collection,
        stone.store,
        stone.generation
    ])?;
    Ok(())
}

/// The row of a deleted generation is gone.
pub(crate) fn gone(
    tx: &Transaction<'_>,
    workspace: &str,
    id: &str,
    generation: i64,
) -> Result<(), StorageError> {
    tx.prepare_cached(
        "UPDATE collection SET deleted = 2
         WHERE workspace = ?1 AND id = ?2 AND incarnation = ?3 AND deleted = 1",
    )?
    .execute(params![workspace, id, generation])?;
    Ok(())
}

/// Deletions of one collection that stores have not confirmed.
pub(crate) fn stones(
    conn: &Connection,
    workspace: &str,
    id: &str,
) -> Result<Vec<Tombstone>, StorageError> {
    let sql = "SELECT workspace, collection, store, incarnation FROM tombstone
         WHERE workspace = ?1 AND collection = ?2 ORDER BY store";
    query_rows(conn, sql, [workspace, id], stone)
}

/// Deletions that a store has not confirmed.
pub(crate) fn pending(
    conn: &Connection,
    store: &str,
    most: u32,
) -> Result<Vec<Tombstone>, StorageError> {
    let sql =
        "SELECT workspace, collection, store, incarnation FROM tombstone WHERE store = ?1 LIMIT ?2";
    query_rows(conn, sql, params![store, most], stone)
}

/// Names of a workspace that were not deleted.
pub(crate) fn live(conn: &Connection, workspace: &str) -> Result<Vec<(String, i64)>, StorageError> {
    let sql = "SELECT id, incarnation FROM collection WHERE workspace = ?1 AND deleted = 0";
    query_rows(conn, sql, [workspace], |row| Ok((row.get(0)?, row.get(1)?)))
}

fn stone(row: &Row<'_>) -> tg_storage::rusqlite::Result<Tombstone> {
    Ok(Tombstone {
        workspace: row.get(0)?,
        collection: row.get(1)?,
        store: row.get(2)?,
        generation: row.get(3)?,
    })
}
