//! Rows of runs. Which of their records are handled is in [`super::completion`].

use tg_storage::rusqlite::{Connection, Row, Transaction, params};
use tg_storage::{StorageError, query_rows};

use super::json::{from_json, json};
use crate::engine::ids;
use crate::engine::readers::Wiring;
use crate::engine::state::{Counts, State, Swept};
use crate::store::runs::{Run, Target, Wanted};

const COLUMNS: &str = "number, thread, workspace, processing, document, flow, collection, incarnation, \
                       time, tags, state, why, epoch, fingerprints, swept, expected, settled, failed, summary, \
                       touched, content";

fn read(row: &Row<'_>) -> tg_storage::rusqlite::Result<Run> {
    let state: String = row.get(10)?;
    Ok(Run {
        number: row.get(0)?,
        thread: row.get(1)?,
        processing: row.get(3)?,
        target: Target {
            workspace: row.get(2)?,
            document: row.get(4)?,
            flow: row.get(5)?,
            collection: row.get(6)?,
            generation: row.get(7)?,
        },
        time: row.get(8)?,
        tags: from_json(row, 9)?,
        state: State::parse(&state),
        why: row.get(11)?,
        epoch: row.get::<_, i64>(12)?.max(0) as u64,
        fingerprints: row.get(13)?,
        swept: Swept::of(row.get(14)?),
        counts: Counts {
            expected: row.get(15)?,
            settled: row.get(16)?,
            failed: row.get(17)?,
        },
        summary: row.get(18)?,
        touched: row.get(19)?,
        content: row.get(20)?,
    })
}

fn select(
    conn: &Connection,
    wanted: &str,
    values: &[&dyn tg_storage::rusqlite::ToSql],
) -> Result<Vec<Run>, StorageError> {
    let sql = format!("SELECT {COLUMNS} FROM run WHERE {wanted}");
    query_rows(conn, &sql, values, read)
}

/// Adds a run that waits for its turn.
pub(crate) fn insert(tx: &Transaction<'_>, wanted: &Wanted, now: i64) -> Result<Run, StorageError> {
    let processing = &wanted.processing;
    tx.prepare_cached(
        "INSERT INTO run (thread, listed, workspace, processing, document, flow, collection,
             incarnation, time, tags, state, why, epoch, shape, swept, touched, expected, settled,
             failed, summary)
         VALUES ('', 1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'queued', '', 0, 0, 0, ?9, 0, 0, 0, '')",
    )?
    .execute(params![
        wanted.workspace,
        processing.id,
        processing.document_id,
        processing.flow,
        processing.collection,
        wanted.generation,
        processing.time,
        json(&processing.tags)?,
        now,
    ])?;
    let number = tx.last_insert_rowid();
    let thread = ids::thread(wanted.generation, &wanted.workspace, &processing.id, number);
    tx.prepare_cached("UPDATE run SET thread = ?2 WHERE number = ?1")?
        .execute(params![number, thread])?;
    get(tx, number)?.ok_or(StorageError::Missing)
}

pub(crate) fn get(conn: &Connection, number: i64) -> Result<Option<Run>, StorageError> {
    Ok(select(conn, "number = ?1", &[&number])?.pop())
}

pub(crate) fn by_thread(conn: &Connection, thread: &str) -> Result<Option<Run>, StorageError> {
    Ok(select(conn, "thread = ?1", &[&thread])?.pop())
}

/// The run behind a processing id.
pub(crate) fn listed(
    conn: &Connection,
    workspace: &str,
    processing: &str,
) -> Result<Option<Run>, StorageError> {
    let wanted = "workspace = ?1 AND processing = ?2 AND listed = 1";
    Ok(select(conn, wanted, &[&workspace, &processing])?.pop())
}

/// What clients see after a number, in the order they came.
pub(crate) fn list(
    conn: &Connection,
    workspace: &str,
    after: i64,
    most: u32,
) -> Result<Vec<Run>, StorageError> {
    select(
        conn,
        "workspace = ?1 AND number > ?2 AND listed = 1 ORDER BY number LIMIT ?3",
        &[&workspace, &after, &most],
    )
}

/// The last of a flow that clients see, the latest first.
pub(crate) fn last(
    conn: &Connection,
    workspace: &str,
    flow: &str,
    most: u32,
) -> Result<Vec<Run>, StorageError> {
    select(
        conn,
        "workspace = ?1 AND flow = ?2 AND listed = 1 ORDER BY number DESC LIMIT ?3",
        &[&workspace, &flow, &most],
    )
}

/// The latest of a target that clients see.
pub(crate) fn latest(conn: &Connection, of: &Target) -> Result<Option<Run>, StorageError> {
    let wanted = "workspace = ?1 AND document = ?2 AND flow = ?3 AND collection = ?4
         AND incarnation = ?5 AND listed = 1 ORDER BY number DESC LIMIT 1";
    let values: [&dyn tg_storage::rusqlite::ToSql; 5] = [
        &of.workspace,
        &of.document,
        &of.flow,
        &of.collection,
        &of.generation,
    ];
    Ok(select(conn, wanted, &values)?.pop())
}

/// Those after a number in which something may still happen.
pub(crate) fn live(conn: &Connection, after: i64, most: u32) -> Result<Vec<Run>, StorageError> {
    select(
        conn,
        "state IN ('queued', 'starting', 'running', 'cancelled') AND number > ?1
         ORDER BY number LIMIT ?2",
        &[&after, &most],
    )
}

/// Those of a document, or of a collection up to a generation.
pub(crate) fn of_document(
    conn: &Connection,
    workspace: &str,
    document: &str,
) -> Result<Vec<Run>, StorageError> {
    select(
        conn,
        "workspace = ?1 AND document = ?2",
        &[&workspace, &document],
    )
}

/// Whether an earlier run of the same document and collection is in the way.
pub(crate) fn has_to_wait(conn: &Connection, run: &Run) -> Result<bool, StorageError> {
    let mut query = conn.prepare_cached(
        "SELECT 1 FROM run WHERE workspace = ?1 AND document = ?2 AND collection = ?3 AND number < ?4
         AND state IN ('queued', 'starting', 'running', 'cancelled')",
    )?;
    let target = &run.target;
    Ok(query.exists(params![
        target.workspace,
        target.document,
        target.collection,
        run.number
    ])?)
}

pub(crate) fn set_state(
    tx: &Transaction<'_>,
    number: i64,
    state: State,
    why: &str,
) -> Result<(), StorageError> {
    tx.prepare_cached("UPDATE run SET state = ?2, why = ?3 WHERE number = ?1")?
        .execute(params![number, state.as_str(), why])?;
    Ok(())
}

pub(crate) fn set_swept(
    tx: &Transaction<'_>,
    number: i64,
    swept: Swept,
) -> Result<(), StorageError> {
    tx.prepare_cached("UPDATE run SET swept = ?2 WHERE number = ?1")?
        .execute([number, swept.number()])?;
    Ok(())
}

/// Clients do not see it any more.
pub(crate) fn unlist(tx: &Transaction<'_>, number: i64) -> Result<(), StorageError> {
    tx.prepare_cached("UPDATE run SET listed = 0 WHERE number = ?1")?
        .execute([number])?;
    Ok(())
}

/// What a run is begun with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beginning<'a> {
    /// The start of its flow.
    pub(crate) epoch: u64,
    /// Who will read.
    pub(crate) wiring: &'a Wiring,
    /// What the flow does, as a number.
    pub(crate) fingerprints: i64,
    /// What the document says, as a number.
    pub(crate) content: i64,
}

/// A run takes its turn.
pub(crate) fn begin(
    tx: &Transaction<'_>,
    number: i64,
    with: Beginning<'_>,
) -> Result<(), StorageError> {
    let Beginning { epoch, wiring, .. } = with;
    tx.prepare_cached(
        "UPDATE run SET state = 'starting', why = '', epoch = ?2, fingerprints = ?3, content = ?4
         WHERE number = ?1",
    )?
    .execute(params![
        number,
        epoch as i64,
        with.fingerprints,
        with.content
    ])?;
    let mut insert = tx.prepare_cached(
        "INSERT INTO run_reader (run, number, subscription, topic, expected, done, failed)
         VALUES (?1, ?2, ?3, ?4, 0, 0, 0)",
    )?;
    for (at, reader) in wiring.readers.iter().enumerate() {
        insert.execute(params![
            number,
            at as i64,
            reader.subscription,
            reader.topic
        ])?;
    }
    Ok(())
}

/// A run goes on under another start of its flow.
pub(crate) fn revive(tx: &Transaction<'_>, number: i64, epoch: u64) -> Result<(), StorageError> {
    tx.prepare_cached("UPDATE run SET state = 'running', why = '', epoch = ?2 WHERE number = ?1")?
        .execute(params![number, epoch as i64])?;
    Ok(())
}

/// A complete run keeps only its numbers and what was remarked.
pub(crate) fn finish(tx: &Transaction<'_>, number: i64, summary: &str) -> Result<(), StorageError> {
    tx.prepare_cached(
        "UPDATE run SET state = 'complete', why = '', summary = ?2 WHERE number = ?1",
    )?
    .execute(params![number, summary])?;
    drop_details(tx, number)
}

pub(crate) fn delete(tx: &Transaction<'_>, number: i64) -> Result<(), StorageError> {
    drop_details(tx, number)?;
    tx.prepare_cached("DELETE FROM run_fault WHERE run = ?1")?
        .execute([number])?;
    tx.prepare_cached("DELETE FROM run WHERE number = ?1")?
        .execute([number])?;
    Ok(())
}

fn drop_details(tx: &Transaction<'_>, number: i64) -> Result<(), StorageError> {
    for table in ["run_pair", "run_reader", "run_effect"] {
        tx.execute(&format!("DELETE FROM {table} WHERE run = ?1"), [number])?;
    }
    Ok(())
}

/// Ends what runs into a collection up to a generation.
pub(crate) fn stop_collection(
    tx: &Transaction<'_>,
    workspace: &str,
    collection: &str,
    generation: i64,
    why: &str,
) -> Result<(), StorageError> {
    tx.prepare_cached(
        "UPDATE run SET state = 'dropped', why = ?4
         WHERE workspace = ?1 AND collection = ?2 AND incarnation <= ?3
         AND state NOT IN ('complete', 'submitted', 'cancelled')",
    )?
    .execute(params![workspace, collection, generation, why])?;
    Ok(())
}

/// Forgets all runs of a workspace.
pub(crate) fn purge(tx: &Transaction<'_>, workspace: &str) -> Result<(), StorageError> {
    let numbers = {
        let mut query = tx.prepare_cached("SELECT number FROM run WHERE workspace = ?1")?;
        query
            .query_map([workspace], |row| row.get(0))?
            .collect::<Result<Vec<i64>, _>>()?
    };
    for number in numbers {
        delete(tx, number)?;
    }
    tx.execute("DELETE FROM outbox WHERE workspace = ?1", [workspace])?;
    Ok(())
}
