//! Which collections are being changed to another model, and where vectors go meanwhile.

use tg_storage::StorageError;
use tg_storage::rusqlite::{Connection, OptionalExtension, Row, params};

use super::schema::{Space, space};
use crate::engine::kind::{Kind, Place};
use crate::store::reembed::Task;
use tg_collections::CollectionKey;

/// Where vectors of a model are put.
pub(super) fn place(
    conn: &Connection,
    key: &CollectionKey,
    kind: Kind,
    model: &str,
) -> Result<Place, StorageError> {
    let serving = Place::serving(kind);
    if model.is_empty() || task(conn, key)?.is_none_or(|task| task.model != model) {
        return Ok(serving);
    }
    let held = space(conn, key, serving)?;
    let beside = held.is_some_and(|held| held.is_of_another(model))
        || space(conn, key, Place::staged(kind))?.is_some();
    Ok(match beside {
        true => Place::staged(kind),
        false => serving,
    })
}

/// The spaces of a collection whose vectors are to be made again.
pub(super) fn outdated(
    conn: &Connection,
    key: &CollectionKey,
    model: &str,
) -> Result<Vec<(Kind, Space)>, StorageError> {
    let mut found = Vec::new();
    for kind in Kind::ALL {
        let held = space(conn, key, Place::serving(kind))?;
        let other = held.filter(|held| held.points > 0 && held.is_of_another(model));
        found.extend(other.map(|held| (kind, held)));
    }
    Ok(found)
}

const COLUMNS: &str = "id, workspace, collection, incarnation, model, topic, leave_out";

fn read_task(row: &Row<'_>) -> tg_storage::rusqlite::Result<Task> {
    let key = CollectionKey::new(&row.get::<_, String>(1)?, &row.get::<_, String>(2)?);
    Ok(Task {
        id: row.get(0)?,
        key: key.in_generation(row.get(3)?),
        model: row.get(4)?,
        topic: row.get(5)?,
        leave_out: row.get(6)?,
    })
}

/// What a collection is being changed to.
pub(super) fn task(conn: &Connection, key: &CollectionKey) -> Result<Option<Task>, StorageError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM reembedding
         WHERE workspace = ?1 AND collection = ?2 AND incarnation = ?3 AND switched = 0"
    );
    let named = params![key.workspace(), key.collection(), key.generation()];
    let found = conn.prepare_cached(&sql)?.query_row(named, read_task);
    Ok(found.optional()?)
}

/// Whether a collection is being changed to another model.
pub(super) fn is_changing(conn: &Connection, key: &CollectionKey) -> Result<bool, StorageError> {
    Ok(task(conn, key)?.is_some())
}

/// Collections that are being changed, beginning after one of them.
pub(super) fn tasks(conn: &Connection, after: i64, most: u32) -> Result<Vec<Task>, StorageError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM reembedding WHERE switched = 0 AND id > ?1 ORDER BY id LIMIT ?2"
    );
    tg_storage::query_rows(conn, &sql, params![after, most], read_task)
}
