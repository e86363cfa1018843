//! The journal's tables. All SQL of this crate is here.
//!
//! A row holds one run of quads. A snapshot is nothing special: the same rows with their past merged
//! into plain insertions at the number of the last change they contain. A dataset that ends is moved to the
//! table `dropped`; its rows go later, a few at a time. The table `ended` remembers the last generation of a name
//! that was dropped.

use std::sync::Arc;

use tg_storage::rusqlite::{Connection, OptionalExtension, Row as SqlRow, Transaction, params};
use tg_storage::{OneWorkspace, StorageError, query_rows};

use crate::engine::quota::Usage;
use crate::store::embedded::batch::Op;
use tg_collections::CollectionKey;

pub(crate) const MIGRATIONS: &[&str] = &[
    "
CREATE TABLE dataset (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace TEXT NOT NULL,
    collection TEXT NOT NULL,
    UNIQUE (workspace, collection)
);
CREATE TABLE journal (
    dataset INTEGER NOT NULL REFERENCES dataset (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    part INTEGER NOT NULL,
    op INTEGER NOT NULL,
    quads INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (dataset, seq, part)
);
",
    "
CREATE TABLE life (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace TEXT NOT NULL,
    collection TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    UNIQUE (workspace, collection, incarnation)
);
INSERT INTO life SELECT id, workspace, collection, 0 FROM dataset;
CREATE TABLE entry (
    dataset INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    part INTEGER NOT NULL,
    op INTEGER NOT NULL,
    quads INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (dataset, seq, part)
);
INSERT INTO entry SELECT dataset, seq, part, op, quads, body FROM journal;
DROP TABLE journal;
DROP TABLE dataset;
ALTER TABLE life RENAME TO dataset;
ALTER TABLE entry RENAME TO journal;
CREATE TABLE ended (
    workspace TEXT NOT NULL,
    collection TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    PRIMARY KEY (workspace, collection)
) WITHOUT ROWID;
CREATE TABLE dropped (dataset INTEGER PRIMARY KEY);
",
    "
CREATE TABLE held (
    dataset INTEGER PRIMARY KEY,
    quads INTEGER NOT NULL,
    bytes INTEGER NOT NULL
);
INSERT INTO held SELECT dataset, sum(quads), sum(120 * quads + 4 * length(body))
    FROM journal WHERE op = 1 GROUP BY dataset;
",
    "
CREATE TABLE absent (
    workspace TEXT NOT NULL,
    collection TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    since INTEGER NOT NULL,
    PRIMARY KEY (workspace, collection, incarnation)
) WITHOUT ROWID;
",
    "DROP TABLE absent;",
];

/// How a backup keeps one workspace of the journal.
pub const ONE_WORKSPACE: OneWorkspace = OneWorkspace::new(
    MIGRATIONS,
    &[
        "DELETE FROM dataset WHERE workspace <> ?1",
        "DELETE FROM ended WHERE workspace <> ?1",
        "DELETE FROM journal WHERE dataset NOT IN (SELECT id FROM dataset)",
        "DELETE FROM held WHERE dataset NOT IN (SELECT id FROM dataset)",
        "DELETE FROM dropped",
    ],
);

/// A row to append.
pub(crate) struct NewRow {
    pub(crate) key: CollectionKey,
    pub(crate) op: Op,
    pub(crate) quads: usize,
    pub(crate) body: Arc<[u8]>,
    /// Bytes of the text before it was compressed.
    pub(crate) bytes: usize,
}

/// Where a row ended up.
#[derive(Debug, Clone)]
pub(crate) struct Appended {
    pub(crate) key: CollectionKey,
    pub(crate) id: i64,
    pub(crate) seq: i64,
    /// The dataset did not exist before.
    pub(crate) is_new: bool,
}

/// A part of a snapshot.
pub(crate) struct Snapshot {
    pub(crate) op: Op,
    pub(crate) held: Usage,
    pub(crate) body: Vec<u8>,
}

/// A stored row.
pub(crate) struct Row {
    pub(crate) seq: i64,
    pub(crate) part: i64,
    pub(crate) op: Op,
    pub(crate) quads: u64,
    pub(crate) body: Vec<u8>,
}

/// Appends rows, each with the next number of its dataset; creates datasets that do not exist.
pub(crate) fn append(tx: &Transaction<'_>, rows: &[NewRow]) -> Result<Vec<Appended>, StorageError> {
    let mut places: Vec<Appended> = Vec::with_capacity(rows.len());
    let mut insert = tx.prepare_cached(
        "INSERT INTO journal (dataset, seq, part, op, quads, body) VALUES (?1, ?2, 0, ?3, ?4, ?5)",
    )?;
    let mut hold = tx.prepare_cached(
        "INSERT INTO held VALUES (?1, ?2, ?3) ON CONFLICT (dataset)
         DO UPDATE SET quads = quads + excluded.quads, bytes = bytes + excluded.bytes",
    )?;
    for row in rows {
        let known = places.iter().rev().find(|place| place.key == row.key);
        let (id, seq, is_new) = match known {
            Some(place) => (place.id, place.seq + 1, place.is_new),
            None => match find(tx, &row.key)? {
                Some(id) => (id, last_seq(tx, id)? + 1, false),
                None => (create(tx, &row.key)?, 1, true),
            },
        };
        insert.execute(params![
            id,
            seq,
            row.op.code(),
            row.quads as i64,
            &row.body[..]
        ])?;
        let adds = row.op.adds(row.quads as u64, row.bytes as u64);
        if adds != Usage::default() {
            hold.execute(params![id, signed(adds.quads), signed(adds.bytes)])?;
        }
        places.push(Appended {
            key: row.key.clone(),
            id,
            seq,
            is_new,
        });
    }
    Ok(places)
}

/// Id of a dataset.
pub(crate) fn find(conn: &Connection, key: &CollectionKey) -> Result<Option<i64>, StorageError> {
    Ok(conn
        .prepare_cached(
            "SELECT id FROM dataset WHERE workspace = ?1 AND collection = ?2 AND incarnation = ?3",
        )?
        .query_row(named(key), |row| row.get(0))
        .optional()?)
}

fn create(conn: &Connection, key: &CollectionKey) -> Result<i64, StorageError> {
    conn.prepare_cached(
        "INSERT INTO dataset (workspace, collection, incarnation) VALUES (?1, ?2, ?3)",
    )?
    .execute(named(key))?;
    Ok(conn.last_insert_rowid())
}

fn last_seq(conn: &Connection, id: i64) -> Result<i64, StorageError> {
    Ok(conn
        .prepare_cached("SELECT coalesce(max(seq), 0) FROM journal WHERE dataset = ?1")?
        .query_row([id], |row| row.get(0))?)
}

/// The next rows of a dataset after a place.
pub(crate) fn rows_after(
    conn: &Connection,
    id: i64,
    after: (i64, i64),
    most: usize,
) -> Result<Vec<Row>, StorageError> {
    let mut query = conn.prepare_cached(
        "SELECT seq, part, op, quads, body FROM journal
         WHERE dataset = ?1 AND (seq, part) > (?2, ?3) ORDER BY seq, part",
    )?;
    let rows = query.query_map(params![id, after.0, after.1], |row| {
        Ok(Row {
            seq: row.get(0)?,
            part: row.get(1)?,
            op: Op::from_code(row.get(2)?),
            quads: row.get::<_, i64>(3)?.unsigned_abs(),
            body: row.get(4)?,
        })
    })?;
    let (mut read, mut bytes) = (Vec::new(), 0);
    for row in rows {
        let row = row?;
        bytes += row.body.len();
        read.push(row);
        if bytes >= most {
            break;
        }
    }
    Ok(read)
}

/// Replaces the rows up to `seq` by a snapshot. `false` if the dataset is gone.
pub(crate) fn replace(
    tx: &Transaction<'_>,
    id: i64,
    seq: i64,
    before: Usage,
    parts: &[Snapshot],
) -> Result<bool, StorageError> {
    let exists = tx
        .prepare_cached("SELECT 1 FROM dataset WHERE id = ?1")?
        .exists([id])?;
    if !exists {
        return Ok(false);
    }
    tx.prepare_cached("DELETE FROM journal WHERE dataset = ?1 AND seq <= ?2")?
        .execute([id, seq])?;
    let mut insert = tx.prepare_cached(
        "INSERT INTO journal (dataset, seq, part, op, quads, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for (part, Snapshot { op, held, body }) in (0_i64..).zip(parts) {
        insert.execute(params![id, seq, part, op.code(), signed(held.quads), body])?;
    }
    let live = parts
        .iter()
        .fold(Usage::default(), |sum, part| sum.and(part.held));
    // Less what went, more what is alive; what was added since stays counted.
    tx.prepare_cached(
        "UPDATE held SET quads = max(quads - ?2, 0) + ?3, bytes = max(bytes - ?4, 0) + ?5
         WHERE dataset = ?1",
    )?
    .execute(params![
        id,
        signed(before.quads),
        signed(live.quads),
        signed(before.bytes),
        signed(live.bytes)
    ])?;
    if parts.is_empty() {
        // The number must not be given out again.
        insert.execute(params![id, seq, 0, Op::Insert.code(), 0, Vec::<u8>::new()])?;
    }
    Ok(true)
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// What the datasets of a workspace hold, by id: at most so much, as what was added twice counts twice.
pub(crate) fn held_by(
    conn: &Connection,
    workspace: &str,
) -> Result<Vec<(i64, Usage)>, StorageError> {
    let sql = "SELECT held.dataset, held.quads, held.bytes FROM dataset
         JOIN held ON held.dataset = dataset.id WHERE workspace = ?1";
    query_rows(conn, sql, [workspace], |row| {
        Ok((row.get(0)?, usage(row, 1)?))
    })
}

/// What a dataset holds at most.
pub(crate) fn held(conn: &Connection, id: i64) -> Result<Usage, StorageError> {
    let mut query = conn.prepare_cached("SELECT quads, bytes FROM held WHERE dataset = ?1")?;
    let held = query.query_row([id], |row| usage(row, 0)).optional()?;
    Ok(held.unwrap_or_default())
}

/// Somebody counted.
pub(crate) fn hold(tx: &Transaction<'_>, id: i64, usage: Usage) -> Result<(), StorageError> {
    tx.prepare_cached("UPDATE held SET quads = ?2, bytes = ?3 WHERE dataset = ?1")?
        .execute(params![id, signed(usage.quads), signed(usage.bytes)])?;
    Ok(())
}

fn usage(row: &SqlRow<'_>, at: usize) -> Result<Usage, tg_storage::rusqlite::Error> {
    Ok(Usage {
        quads: row.get::<_, i64>(at)?.unsigned_abs(),
        bytes: row.get::<_, i64>(at + 1)?.unsigned_abs(),
    })
}

fn named(key: &CollectionKey) -> (&str, &str, i64) {
    (key.workspace(), key.collection(), key.generation())
}

/// The last generation that was dropped of each name.
pub(crate) fn ended(conn: &Connection) -> Result<Vec<(String, String, i64)>, StorageError> {
    query_rows(
        conn,
        "SELECT workspace, collection, incarnation FROM ended",
        [],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )
}

/// Ends a collection up to a generation. Returns about how many quads it had.
pub(crate) fn end_collection(
    tx: &Transaction<'_>,
    last: &CollectionKey,
) -> Result<u64, StorageError> {
    tx.prepare_cached(
        "INSERT INTO ended VALUES (?1, ?2, ?3) ON CONFLICT (workspace, collection)
         DO UPDATE SET incarnation = max(incarnation, excluded.incarnation)",
    )?
    .execute(named(last))?;
    let mut query = tx.prepare_cached(
        "SELECT id FROM dataset WHERE workspace = ?1 AND collection = ?2 AND incarnation <= ?3",
    )?;
    let ids = query.query_map(named(last), |row| row.get(0))?;
    end(tx, ids.collect::<Result<_, _>>()?)
}

/// Ends everything of a workspace. Returns about how many quads it had.
pub(crate) fn end_workspace(tx: &Transaction<'_>, workspace: &str) -> Result<u64, StorageError> {
    tx.prepare_cached("DELETE FROM ended WHERE workspace = ?1")?
        .execute([workspace])?;
    let mut query = tx.prepare_cached("SELECT id FROM dataset WHERE workspace = ?1")?;
    let ids = query.query_map([workspace], |row| row.get(0))?;
    end(tx, ids.collect::<Result<_, _>>()?)
}

fn end(tx: &Transaction<'_>, ids: Vec<i64>) -> Result<u64, StorageError> {
    let mut count = tx.prepare_cached(
        "SELECT coalesce(sum(CASE op WHEN 0 THEN -quads WHEN 3 THEN 0 ELSE quads END), 0) FROM journal
         WHERE dataset = ?1",
    )?;
    let mut remember = tx.prepare_cached("INSERT OR IGNORE INTO dropped VALUES (?1)")?;
    let mut forget = tx.prepare_cached("DELETE FROM dataset WHERE id = ?1")?;
    let mut release = tx.prepare_cached("DELETE FROM held WHERE dataset = ?1")?;
    let mut sum: u64 = 0;
    for id in ids {
        let quads: i64 = count.query_row([id], |row| row.get(0))?;
        sum += u64::try_from(quads).unwrap_or(0);
        remember.execute([id])?;
        forget.execute([id])?;
        release.execute([id])?;
    }
    Ok(sum)
}

/// Gives back some rows of datasets that ended. `false` when there are none left.
pub(crate) fn purge_some(tx: &Transaction<'_>, rows: usize) -> Result<bool, StorageError> {
    let mut query = tx.prepare_cached("SELECT dataset FROM dropped LIMIT 1")?;
    let id: Option<i64> = query.query_row([], |row| row.get(0)).optional()?;
    let Some(id) = id else {
        return Ok(false);
    };
    let gone = tx
        .prepare_cached(
            "DELETE FROM journal WHERE rowid IN
             (SELECT rowid FROM journal WHERE dataset = ?1 LIMIT ?2)",
        )?
        .execute(params![id, rows as i64])?;
    if gone == 0 {
        tx.prepare_cached("DELETE FROM dropped WHERE dataset = ?1")?
            .execute([id])?;
    }
    Ok(true)
}

/// Workspaces that have anything here.
pub(crate) fn workspaces(conn: &Connection) -> Result<Vec<String>, StorageError> {
    let sql = "SELECT workspace FROM dataset UNION SELECT workspace FROM ended ORDER BY workspace";
    query_rows(conn, sql, [], |row| row.get(0))
}

/// Collections of a workspace that have a dataset.
pub(crate) fn collections(conn: &Connection, workspace: &str) -> Result<Vec<String>, StorageError> {
    let sql = "SELECT DISTINCT collection FROM dataset WHERE workspace = ?1 ORDER BY collection";
    query_rows(conn, sql, [workspace], |row| row.get(0))
}
