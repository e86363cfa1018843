//! What the library remembers of collections beside their config rows: the last incarnation of each name,
//! and which stores still have to drop which.

use tg_storage::StorageError;
use tg_storage::rusqlite::{Connection, OptionalExtension, Transaction, params};

/// Where the last incarnation of a name is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    /// It is there.
    Live = 0,
    /// It is deleted; its config row may still be there.
    Noted = 1,
    /// It is deleted, and its row is gone.
    Gone = 2,
}

/// What is remembered of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    /// Its last incarnation.
    pub(crate) incarnation: i64,
    pub(crate) life: Life,
    /// Incarnation that has the names of the vocabulary; -1 for none.
    pub(crate) labelled: i64,
}

/// A store that has not confirmed a deletion yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tombstone {
    pub(crate) workspace: String,
    pub(crate) collection: String,
    pub(crate) store: String,
    pub(crate) incarnation: i64,
}

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
            incarnation: row.get(0)?,
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
    incarnation: i64,
    life: Life,
) -> Result<(), StorageError> {
    tx.prepare_cached(
        "INSERT INTO collection (workspace, id, incarnation, deleted, labelled)
         VALUES (?1, ?2, ?3, ?4, -1)
         ON CONFLICT (workspace, id) DO UPDATE SET incarnation = ?3, deleted = ?4",
    )?
    .execute(params![workspace, id, incarnation, life as i64])?;
    Ok(())
}

/// An incarnation has the names of the vocabulary.
pub(crate) fn set_labelled(
    tx: &Transaction<'_>,
    workspace: &str,
    id: &str,
    incarnation: i64,
) -> Result<(), StorageError> {
    tx.prepare_cached("UPDATE collection SET labelled = ?3 WHERE workspace = ?1 AND id = ?2")?
        .execute(params![workspace, id, incarnation])?;
    Ok(())
}

/// A store is to drop incarnations up to one.
pub(crate) fn bury(tx: &Transaction<'_>, stone: &Tombstone) -> Result<(), StorageError> {
    tx.prepare_cached(
        "INSERT INTO tombstone (workspace, collection, store, incarnation) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (workspace, collection, store)
         DO UPDATE SET incarnation = max(incarnation, ?4)",
    )?
    .execute(params![
        stone.workspace,
        stone.collection,
        stone.store,
        stone.incarnation
    ])?;
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
        stone.incarnation
    ])?;
    Ok(())
}

/// A store's deletion of one collection, if it has not confirmed it.
pub(crate) fn of(
    conn: &Connection,
    workspace: &str,
    id: &str,
    store: &str,
) -> Result<Option<Tombstone>, StorageError> {
    let mut query = conn.prepare_cached(
        "SELECT incarnation FROM tombstone WHERE workspace = ?1 AND collection = ?2 AND store = ?3",
    )?;
    let incarnation = query.query_row([workspace, id, store], |row| row.get(0));
    Ok(incarnation.optional()?.map(|incarnation| Tombstone {
        workspace: workspace.to_owned(),
        collection: id.to_owned(),
        store: store.to_owned(),
        incarnation,
    }))
}

/// Deletions that a store has not confirmed.
pub(crate) fn pending(
    conn: &Connection,
    store: &str,
    most: u32,
) -> Result<Vec<Tombstone>, StorageError> {
    let mut query = conn.prepare_cached(
        "SELECT workspace, collection, store, incarnation FROM tombstone WHERE store = ?1 LIMIT ?2",
    )?;
    let rows = query.query_map(params![store, most], |row| {
        Ok(Tombstone {
            workspace: row.get(0)?,
            collection: row.get(1)?,
            store: row.get(2)?,
            incarnation: row.get(3)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Names of a workspace that were not deleted.
pub(crate) fn live(conn: &Connection, workspace: &str) -> Result<Vec<(String, i64)>, StorageError> {
    let mut query = conn.prepare_cached(
        "SELECT id, incarnation FROM collection WHERE workspace = ?1 AND deleted = 0",
    )?;
    let rows = query.query_map([workspace], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
