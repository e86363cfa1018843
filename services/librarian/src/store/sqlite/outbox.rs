//! Retractions that are still to be published.

use tg_storage::rusqlite::{Connection, Row, Transaction, params};
use tg_storage::{StorageError, query_rows};

use super::json::{from_json, json};
use crate::store::runs::{Retraction, Target};

fn read(row: &Row<'_>) -> tg_storage::rusqlite::Result<Retraction> {
    Ok(Retraction {
        number: row.get(0)?,
        target: Target {
            workspace: row.get(1)?,
            flow: row.get(2)?,
            collection: row.get(3)?,
            generation: row.get(4)?,
            document: row.get(5)?,
        },
        thread: row.get(6)?,
        record: row.get(7)?,
        chunks: from_json(row, 8)?,
        triples: from_json(row, 9)?,
        superseded: from_json(row, 10)?,
    })
}

/// Adds one; with `after` it waits until that run is over.
pub(crate) fn insert(
    tx: &Transaction<'_>,
    retraction: &Retraction,
    after: Option<i64>,
) -> Result<(), StorageError> {
    let target = &retraction.target;
    tx.prepare_cached(
        "INSERT INTO outbox
         (workspace, flow, collection, incarnation, document, thread, record, chunks, triples,
          after, superseded)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?
    .execute(params![
        target.workspace,
        target.flow,
        target.collection,
        target.generation,
        target.document,
        retraction.thread,
        retraction.record,
        json(&retraction.chunks)?,
        json(&retraction.triples)?,
        after,
        json(&retraction.superseded)?,
    ])?;
    Ok(())
}

/// Those that wait for nothing, in order, after a number.
pub(crate) fn due(
    conn: &Connection,
    after: i64,
    most: u32,
) -> Result<Vec<Retraction>, StorageError> {
    let sql =
        "SELECT number, workspace, flow, collection, incarnation, document, thread, record, chunks,
                triples, superseded
         FROM outbox WHERE number > ?1 AND (after IS NULL OR NOT EXISTS (
             SELECT 1 FROM run WHERE run.number = outbox.after
             AND run.settled < run.expected AND run.state IN ('starting', 'running', 'cancelled')
         )) ORDER BY number LIMIT ?2";
    query_rows(conn, sql, params![after, most], read)
}

pub(crate) fn remove(tx: &Transaction<'_>, number: i64) -> Result<(), StorageError> {
    tx.prepare_cached("DELETE FROM outbox WHERE number = ?1")?
        .execute([number])?;
    Ok(())
}

/// Drops what was to be retracted from a collection that is gone.
pub(crate) fn forget_collection(
    tx: &Transaction<'_>,
    workspace: &str,
    collection: &str,
    generation: i64,
) -> Result<(), StorageError> {
    tx.prepare_cached(
        "DELETE FROM outbox WHERE workspace = ?1 AND collection = ?2 AND incarnation <= ?3",
    )?
    .execute(params![workspace, collection, generation])?;
    Ok(())
}
