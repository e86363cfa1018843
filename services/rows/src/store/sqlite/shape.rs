//! The shape of a stored table: what its columns were made from.

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde_json::json;
use tg_schemas::table::Table;
use tg_storage::StorageError;

use super::{quota, sql};
use crate::engine::value;
use tg_collections::CollectionKey;

/// A stored table of a collection.
#[derive(Debug, Clone)]
pub(super) struct Set {
    pub(super) id: i64,
    shape: String,
}

/// What decides the columns, indexes and keys of a table.
fn shape(table: &Table) -> String {
    let fields = table.fields.iter().map(|field| {
        json!([
            field.name,
            sql::affinity(field.kind),
            format!("{:?}", field.kind),
            field.primary_key,
            field.indexed
        ])
    });
    json!(fields.collect::<Vec<_>>()).to_string()
}

/// The stored table, if there is one.
pub(super) fn find(
    conn: &Connection,
    key: &CollectionKey,
    name: &str,
) -> Result<Option<Set>, StorageError> {
    let mut statement = conn.prepare_cached(
        "SELECT id, shape FROM sets WHERE workspace = ?1 AND collection = ?2 AND incarnation = ?3 \
         AND name = ?4 AND dropped = 0",
    )?;
    let found = statement.query_row(
        params![key.workspace(), key.collection(), key.generation(), name],
        |row| {
            Ok(Set {
                id: row.get(0)?,
                shape: row.get(1)?,
            })
        },
    );
    Ok(found.optional()?)
}

/// Whether the stored table has the columns that the configuration wants.
pub(super) fn fits(set: &Set, table: &Table) -> bool {
    set.shape == shape(table)
}

/// The stored table in the wanted shape: made if it is not there, rebuilt from the rows' texts if it has
/// another shape.
pub(super) fn ensure(
    tx: &Transaction<'_>,
    key: &CollectionKey,
    table: &Table,
) -> Result<Set, StorageError> {
    let known = find(tx, key, &table.key)?;
    match known {
        Some(set) if fits(&set, table) => Ok(set),
        Some(old) => {
            retire(tx, old.id)?;
            let new = create(tx, key, table)?;
            copy(tx, &old, &new, table)?;
            Ok(new)
        }
        None => create(tx, key, table),
    }
}

/// Takes a stored table out of use; its rows are removed later.
pub(super) fn retire(tx: &Transaction<'_>, id: i64) -> Result<(), StorageError> {
    tx.prepare_cached("UPDATE sets SET dropped = 1 WHERE id = ?1")?
        .execute([id])?;
    Ok(())
}

fn create(tx: &Transaction<'_>, key: &CollectionKey, table: &Table) -> Result<Set, StorageError> {
    let shape = shape(table);
    tx.execute(
        "INSERT INTO sets (workspace, collection, incarnation, name, shape, bytes) \
         VALUES (?1, ?2, ?3, ?4, ?5, 0)",
        params![
            key.workspace(),
            key.collection(),
            key.generation(),
            table.key,
            shape
        ],
    )?;
    let id = tx.last_insert_rowid();
    tx.execute_batch(&sql::create(id, table))?;
    Ok(Set { id, shape })
}

fn copy(tx: &Transaction<'_>, old: &Set, new: &Set, table: &Table) -> Result<(), StorageError> {
    let mut sources = tx.prepare(
        "INSERT OR IGNORE INTO sources (set_id, key, chunk) \
         SELECT ?1, ?2, chunk FROM sources WHERE set_id = ?3 AND key = ?4",
    )?;
    let mut insert = tx.prepare(&sql::upsert(new.id, table))?;
    let mut rows = tx.prepare(&format!("SELECT key, texts FROM r{} ORDER BY n", old.id))?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let (before, texts): (Vec<u8>, String) = (row.get(0)?, row.get(1)?);
        let texts = serde_json::from_slice(texts.as_bytes()).unwrap_or_default();
        let row = value::reread(table, texts);
        let kept = sql::texts(&row);
        insert.execute(rusqlite::params_from_iter(sql::bound(&row, kept)))?;
        sources.execute(params![new.id, row.key.as_slice(), old.id, before])?;
    }
    quota::measure(tx, new.id)
}
