//! Writing rows, and taking back those that came from a chunk.

use rusqlite::{OptionalExtension, Transaction, params};
use tg_schemas::msg::{Retract, Superseded};
use tg_schemas::table::Table;
use tg_storage::{StorageError, query_rows};

use super::{SqliteRows, quota, shape, sql};
use crate::engine::value::Row;
use tg_collections::CollectionKey;

impl SqliteRows {
    /// Stores rows of a table, each once whatever else comes from the same chunk; `chunk` is empty for rows
    /// that come from nowhere. Returns how many rows are stored, new or not.
    pub(super) async fn write_rows(
        &self,
        key: &CollectionKey,
        table: Table,
        rows: Vec<Row>,
        chunk: String,
    ) -> Result<usize, StorageError> {
        let (key, gate) = (key.clone(), self.gate.clone());
        let write = move |tx: &Transaction<'_>| {
            let texts: Vec<String> = rows.iter().map(sql::texts).collect();
            let bytes = texts.iter().map(String::len).sum();
            gate.check(tx, key.workspace(), rows.len(), bytes)?;
            let set = shape::ensure(tx, &key, &table)?;
            let held = format!("SELECT octet_length(texts) FROM r{} WHERE key = ?1", set.id);
            let mut held = tx.prepare_cached(&held)?;
            let mut insert = tx.prepare_cached(&sql::upsert(set.id, &table))?;
            let mut source = tx.prepare_cached(
                "INSERT OR IGNORE INTO sources (set_id, key, chunk) VALUES (?1, ?2, ?3)",
            )?;
            let mut more = 0;
            for (row, texts) in rows.iter().zip(texts) {
                let before = held.query_row([row.key.as_slice()], |row| row.get::<_, i64>(0));
                more += texts.len() as i64 - before.optional()?.unwrap_or(0);
                insert.execute(rusqlite::params_from_iter(sql::bound(row, texts)))?;
                source.execute(params![set.id, row.key.as_slice(), chunk])?;
            }
            quota::grown(tx, set.id, more)?;
            Ok(rows.len())
        };
        self.database.write(write).await
    }

    /// Retracts what came only from these chunks, or from what was superseded of others. Returns how many rows are gone.
    pub(super) async fn retract_rows(
        &self,
        key: &CollectionKey,
        what: Retract,
    ) -> Result<usize, StorageError> {
        let key = key.clone();
        let retract = move |tx: &Transaction<'_>| {
            let mut gone = 0;
            for id in sets(tx, &key)? {
                let mut sources = Vec::new();
                for chunk in &what.chunks {
                    sources.push(chunk.clone());
                    sources.extend(named(tx, id, chunk)?);
                }
                for one in &what.superseded {
                    for chunk in &one.chunks {
                        sources.extend(outdated(tx, id, chunk, one)?);
                    }
                }
                gone += retract_from(tx, id, &sources)?;
            }
            Ok(gone)
        };
        self.database.write(retract).await
    }
}

/// Sources of a chunk of which it is known who found the rows.
fn named(tx: &Transaction<'_>, id: i64, chunk: &str) -> Result<Vec<String>, StorageError> {
    let mut statement = tx.prepare_cached(
        "SELECT DISTINCT chunk FROM sources
         WHERE set_id = ?2 AND chunk > ?1 || char(10) AND chunk < ?1 || char(11)",
    )?;
    let found = statement.query_map(params![chunk, id], |row| row.get(0))?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// Sources of what one processor found in a chunk that goes.
fn outdated(
    tx: &Transaction<'_>,
    id: i64,
    chunk: &str,
    of: &Superseded,
) -> Result<Vec<String>, StorageError> {
    if of.processor.is_empty() {
        return Ok(vec![chunk.to_owned()]);
    }
    let mut found = named(tx, id, chunk)?;
    found.retain(|source| {
        let made_by = source.get(chunk.len() + 1..).unwrap_or_default();
        of.takes(made_by)
    });
    Ok(found)
}

fn sets(tx: &Transaction<'_>, key: &CollectionKey) -> Result<Vec<i64>, StorageError> {
    let sql = "SELECT id FROM sets WHERE workspace = ?1 AND collection = ?2 AND incarnation = ?3 AND dropped = 0";
    query_rows(
        tx,
        sql,
        params![key.workspace(), key.collection(), key.generation()],
        |row| row.get(0),
    )
}

fn retract_from(tx: &Transaction<'_>, id: i64, chunks: &[String]) -> Result<usize, StorageError> {
    let mut of_chunk =
        tx.prepare_cached("SELECT key FROM sources WHERE chunk = ?1 AND set_id = ?2")?;
    let mut forget =
        tx.prepare_cached("DELETE FROM sources WHERE set_id = ?1 AND key = ?2 AND chunk = ?3")?;
    let remove = format!(
        "DELETE FROM r{id} WHERE key = ?1 AND NOT EXISTS \
         (SELECT 1 FROM sources WHERE set_id = {id} AND key = ?1) RETURNING octet_length(texts)"
    );
    let mut remove = tx.prepare_cached(&remove)?;
    let (mut gone, mut bytes) = (0, 0);
    for chunk in chunks {
        let keys = of_chunk.query_map(params![chunk, id], |row| row.get(0))?;
        let keys: Vec<Vec<u8>> = keys.collect::<Result<_, _>>()?;
        for key in keys {
            forget.execute(params![id, key, chunk])?;
            let removed = remove.query_row(params![key], |row| row.get::<_, i64>(0));
            if let Some(size) = removed.optional()? {
                gone += 1;
                bytes += size;
            }
        }
    }
    quota::grown(tx, id, -bytes)?;
    Ok(gone)
}
