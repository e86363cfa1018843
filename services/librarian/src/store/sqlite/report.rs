//! What is reported of a run: its readers, what it did, what failed, what is open.

use std::collections::HashSet;

use tg_schemas::BAD_CONTENT;
use tg_schemas::msg::ProcessingError;
use tg_storage::rusqlite::{Connection, params};
use tg_storage::{StorageError, query_rows};

use crate::engine::progress::{Effect, Reading};
use crate::engine::readers::Reader;
use crate::store::runs::Pair;

/// What each reader did.
pub(crate) fn readings(conn: &Connection, number: i64) -> Result<Vec<Reading>, StorageError> {
    let sql = "SELECT subscription, topic, expected, done, failed FROM run_reader WHERE run = ?1
         ORDER BY number";
    query_rows(conn, sql, [number], |row| {
        Ok(Reading {
            reader: Reader {
                subscription: row.get(0)?,
                topic: row.get(1)?,
            },
            expected: row.get(2)?,
            done: row.get(3)?,
            failed: row.get(4)?,
        })
    })
}

pub(crate) fn effects(conn: &Connection, number: i64) -> Result<Vec<Effect>, StorageError> {
    query_rows(
        conn,
        "SELECT kind, made, stored FROM run_effect WHERE run = ?1",
        [number],
        |row| {
            Ok(Effect {
                kind: row.get(0)?,
                made: row.get(1)?,
                stored: row.get(2)?,
            })
        },
    )
}

/// What went wrong or was remarked, at most `most`.
pub(crate) fn faults(
    conn: &Connection,
    number: i64,
    most: u32,
) -> Result<Vec<ProcessingError>, StorageError> {
    let sql = "SELECT subject, processor, message, kind FROM run_fault WHERE run = ?1
         ORDER BY subject, reader LIMIT ?2";
    query_rows(conn, sql, params![number, most], |row| {
        Ok(ProcessingError {
            subject: row.get(0)?,
            processor: row.get(1)?,
            message: row.get(2)?,
            kind: row.get(3)?,
        })
    })
}

/// How many faults and remarks are kept, and how many of them say what the document lacks.
pub(crate) fn faults_kept(conn: &Connection, number: i64) -> Result<(i64, i64), StorageError> {
    let sql = "SELECT count(*), count(*) FILTER (WHERE kind = ?2) FROM run_fault WHERE run = ?1";
    let mut query = conn.prepare_cached(sql)?;
    Ok(query.query_row(params![number, BAD_CONTENT], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?)
}

/// Chunks of which something failed, where that is known of each failure: of what reads chunks, or rows of one of them. Other
/// records are of several, and what could not be read says of none.
pub(crate) fn failed_chunks(
    conn: &Connection,
    number: i64,
    failed: i64,
) -> Result<Option<HashSet<String>>, StorageError> {
    let mut query = conn.prepare_cached(
        "SELECT run_fault.subject, run_reader.subscription, run_reader.topic FROM run_fault
         JOIN run_pair ON run_pair.run = run_fault.run AND run_pair.record = run_fault.record
              AND run_pair.reader = run_fault.reader
         JOIN run_reader ON run_reader.run = run_pair.run AND run_reader.number = run_pair.reader
         WHERE run_fault.run = ?1 AND run_pair.expected = 1 AND run_pair.outcome = 2",
    )?;
    let rows = query.query_map([number], |row| {
        let subscription = row.get(1)?;
        let topic = row.get(2)?;
        Ok((
            row.get::<_, String>(0)?,
            Reader {
                subscription,
                topic,
            },
        ))
    })?;
    let (mut chunks, mut known) = (HashSet::new(), 0);
    for row in rows {
        let (chunk, reader) = row?;
        let says = !chunk.is_empty();
        if says && ["Chunk", "ExtractedObject"].contains(&reader.message()) {
            chunks.insert(chunk);
            known += 1;
        }
    }
    Ok((known == failed).then_some(chunks))
}

/// Records that were not handled well yet.
pub(crate) fn open_pairs(
    conn: &Connection,
    number: i64,
    most: u32,
) -> Result<Vec<Pair>, StorageError> {
    let sql = "SELECT record, subscription FROM run_pair
         JOIN run_reader ON run_reader.run = run_pair.run AND run_reader.number = run_pair.reader
         WHERE run_pair.run = ?1 AND run_pair.expected = 1 AND coalesce(outcome, 2) = 2 LIMIT ?2";
    query_rows(conn, sql, params![number, most], |row| {
        Ok(Pair {
            record: row.get(0)?,
            subscription: row.get(1)?,
        })
    })
}
