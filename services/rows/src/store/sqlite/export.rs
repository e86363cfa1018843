//! Whole collections, page by page, as their rows were written.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};
use tg_collections::CollectionKey;
use tg_storage::StorageError;

use super::SqliteRows;
use crate::store::{Page, RowCursor};

/// Bytes of texts after which a page ends: it travels in one message.
const BYTES: usize = 2 << 20;

/// Rows as they were written: texts by field.
type Texts = Vec<BTreeMap<String, String>>;

impl SqliteRows {
    /// See [`RowStore::page`](crate::store::RowStore::page).
    pub(super) async fn page_of(
        &self,
        key: &CollectionKey,
        after: RowCursor,
        most: usize,
    ) -> Result<Page, StorageError> {
        let (key, workspace) = (key.clone(), key.workspace().to_owned());
        let read = move |conn: &Connection| {
            let tables = tables(conn, &key, &after.table)?;
            for (at, (id, table)) in tables.iter().enumerate() {
                let behind = match *table == after.table {
                    true => after.row,
                    false => 0,
                };
                let (rows, last) = rows(conn, *id, behind, most)?;
                // A table without rows is passed over, but for the last.
                if rows.is_empty() && at + 1 < tables.len() {
                    continue;
                }
                let row = match last {
                    Some(row) => Some((table.clone(), row)),
                    None => tables.get(at + 1).map(|(_, next)| (next.clone(), 0)),
                };
                return Ok(Page {
                    table: table.clone(),
                    rows,
                    next: row.map(|(table, row)| RowCursor { table, row }),
                });
            }
            Ok(Page::default())
        };
        self.database.read_for(&workspace, read).await
    }
}

/// Tables of a collection in the order of their names, from one on.
fn tables(
    conn: &Connection,
    key: &CollectionKey,
    from: &str,
) -> Result<Vec<(i64, String)>, StorageError> {
    let mut query = conn.prepare_cached(
        "SELECT id, name FROM sets WHERE workspace = ?1 AND collection = ?2 AND incarnation = ?3 \
         AND dropped = 0 AND name >= ?4 ORDER BY name",
    )?;
    let bound = params![key.workspace(), key.collection(), key.generation(), from];
    let tables = query.query_map(bound, |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(tables.collect::<Result<_, _>>()?)
}

/// Texts of a table's rows, and the number of the last where more may follow.
fn rows(
    conn: &Connection,
    id: i64,
    behind: i64,
    most: usize,
) -> Result<(Texts, Option<i64>), StorageError> {
    let sql = format!("SELECT n, texts FROM r{id} WHERE n > ?1 ORDER BY n LIMIT ?2");
    let mut query = conn.prepare(&sql)?;
    let mut found = query.query(params![behind, most as i64])?;
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while let Some(row) = found.next()? {
        let n: i64 = row.get(0)?;
        let texts = row.get_ref(1)?.as_str().unwrap_or_default();
        let read = serde_json::from_slice(texts.as_bytes());
        rows.push(read.map_err(|error| StorageError::Corrupt(error.to_string()))?);
        bytes += texts.len();
        if rows.len() >= most || bytes >= BYTES {
            return Ok((rows, Some(n)));
        }
    }
    Ok((rows, None))
}
