//! The file of vectors: the record of truth. All SQL over vectors is below this module.
//!
//! A *space* holds the vectors of one kind of one collection in one generation of its name. Numbers of points,
//! subjects, sources and facet sets are counted per space; their row ids carry the space in the upper
//! half, so that each space is one contiguous range that no query of another can touch. The table `ended`
//! remembers the last generation of each name that was dropped.
//!
//! While a collection is changed to another model, a kind has a second space, of code 101 and so on, with the vectors that
//! will serve; see the module `reembed`.
//!
//! `bytes` of a space is of its vectors, what they were made of, and the texts of subjects and facets; spaces of the release before are measured
//! when the workspace is written to.

use std::path::Path;

use tg_storage::rusqlite::{Connection, OptionalExtension, Transaction, params};
use tg_storage::{Database, Durability, OneWorkspace, StorageError, query_rows};

use crate::engine::kind::Place;
use tg_collections::{CollectionKey, Usage};

const MIGRATIONS: &[&str] = &[
    "
CREATE TABLE space (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace TEXT NOT NULL,
    collection TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    model TEXT NOT NULL,
    dimension INTEGER NOT NULL,
    points INTEGER NOT NULL DEFAULT 0,
    next_point INTEGER NOT NULL DEFAULT 1,
    next_subject INTEGER NOT NULL DEFAULT 1,
    next_source INTEGER NOT NULL DEFAULT 1,
    next_facet INTEGER NOT NULL DEFAULT 1,
    UNIQUE (workspace, collection, incarnation, kind)
) STRICT;
CREATE TABLE ended (
    workspace TEXT NOT NULL,
    collection TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    PRIMARY KEY (workspace, collection)
) STRICT, WITHOUT ROWID;
CREATE TABLE dropped (space INTEGER PRIMARY KEY) STRICT;
CREATE TABLE subject (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, body TEXT NOT NULL) STRICT;
CREATE TABLE source (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE) STRICT;
CREATE TABLE facet (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, body TEXT NOT NULL) STRICT;
CREATE TABLE facet_entry (
    space INTEGER NOT NULL,
    field INTEGER NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    facet INTEGER NOT NULL,
    PRIMARY KEY (space, field, name, value, facet)
) STRICT, WITHOUT ROWID;
CREATE TABLE point (
    id INTEGER PRIMARY KEY,
    subject INTEGER NOT NULL,
    source INTEGER NOT NULL,
    tag INTEGER NOT NULL,
    facet INTEGER NOT NULL,
    vector BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX point_key ON point (subject, source, tag);
CREATE INDEX point_source ON point (source);
",
    "
ALTER TABLE space ADD COLUMN bytes INTEGER;
",
    "
-- Of what is known by its maker, too: hash of the chunk, and who made it.
ALTER TABLE source ADD COLUMN chunk BLOB;
ALTER TABLE source ADD COLUMN made_by TEXT NOT NULL DEFAULT '';
CREATE INDEX source_of_chunk ON source (chunk) WHERE chunk IS NOT NULL;
",
    "
-- What a vector was made of: '' where its subject says it, NULL where nobody does. And what a source is called, as its
-- hash cannot be taken to another space.
ALTER TABLE point ADD COLUMN text TEXT;
CREATE INDEX point_textless ON point (id) WHERE text IS NULL;
ALTER TABLE source ADD COLUMN name TEXT NOT NULL DEFAULT '';
-- Was made anew by the model that a collection is being changed to: it serves until the switch and goes then.
ALTER TABLE source ADD COLUMN superseded INTEGER NOT NULL DEFAULT 0;
-- Points up to this number were made again by the model that a collection is being changed to.
ALTER TABLE space ADD COLUMN reembedded INTEGER NOT NULL DEFAULT 0;
CREATE TABLE reembedding (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace TEXT NOT NULL,
    collection TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    model TEXT NOT NULL,
    topic TEXT NOT NULL,
    leave_out INTEGER NOT NULL,
    done INTEGER NOT NULL DEFAULT 0,
    textless INTEGER NOT NULL DEFAULT 0,
    switched INTEGER NOT NULL DEFAULT 0,
    UNIQUE (workspace, collection, incarnation)
) STRICT;
",
    "
-- Points whose text the model refuses that a collection is being changed to, and why; some are to be tried again.
CREATE TABLE refused (
    point INTEGER PRIMARY KEY,
    reembedding INTEGER NOT NULL,
    why TEXT NOT NULL,
    again INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX refused_of ON refused (reembedding, again, point);
ALTER TABLE reembedding ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
-- State of the spaces for which textless and refused were counted.
ALTER TABLE reembedding ADD COLUMN counted TEXT NOT NULL DEFAULT '';
",
    "
-- Points that wait for a switch and are not among those that serve, and their bytes: they count beside those.
ALTER TABLE space ADD COLUMN fresh INTEGER NOT NULL DEFAULT 0;
ALTER TABLE space ADD COLUMN fresh_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE point ADD COLUMN fresh INTEGER NOT NULL DEFAULT 0;
",
];

/// How a backup keeps one workspace of the vectors.
pub const ONE_WORKSPACE: OneWorkspace = OneWorkspace::new(
    MIGRATIONS,
    &[
        "DELETE FROM space WHERE workspace <> ?1",
        "DELETE FROM ended WHERE workspace <> ?1",
        "DELETE FROM reembedding WHERE workspace <> ?1",
        "DELETE FROM refused WHERE reembedding NOT IN (SELECT id FROM reembedding)",
        "DELETE FROM point WHERE (id >> 32) NOT IN (SELECT id FROM space)",
        "DELETE FROM subject WHERE (id >> 32) NOT IN (SELECT id FROM space)",
        "DELETE FROM source WHERE (id >> 32) NOT IN (SELECT id FROM space)",
        "DELETE FROM facet WHERE (id >> 32) NOT IN (SELECT id FROM space)",
        "DELETE FROM facet_entry WHERE space NOT IN (SELECT id FROM space)",
        "DELETE FROM dropped",
    ],
);

/// Opens or creates the file.
pub(crate) fn open(path: &Path, durability: Durability) -> Result<Database, StorageError> {
    Database::open(path, MIGRATIONS, durability)
}

/// A file that exists only in memory.
pub(crate) fn in_memory() -> Result<Database, StorageError> {
    Database::in_memory(MIGRATIONS)
}

/// Workspaces that have anything in a file of vectors or of words.
pub(crate) fn workspaces(conn: &Connection) -> Result<Vec<String>, StorageError> {
    let sql = "SELECT workspace FROM space UNION SELECT workspace FROM ended";
    query_rows(conn, sql, [], |row| row.get(0))
}

/// A space as recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Space {
    /// Its number.
    pub(crate) id: i64,
    /// Model of its vectors; empty when nobody said.
    pub(crate) model: String,
    /// Numbers of a vector.
    pub(crate) dimension: usize,
    /// Vectors in it.
    pub(crate) points: i64,
    /// Number up to which they were made again by another model.
    pub(crate) reembedded: u32,
}

impl Space {
    /// Whether its vectors are of another model. Where nobody said which it is, it is another one.
    pub(crate) fn is_of_another(&self, model: &str) -> bool {
        self.model != model
    }
}

/// The space of a collection, if it has one.
pub(crate) fn space(
    conn: &Connection,
    key: &CollectionKey,
    place: Place,
) -> Result<Option<Space>, StorageError> {
    let sql = "SELECT id, model, dimension, points, reembedded FROM space
               WHERE workspace = ?1 AND collection = ?2 AND incarnation = ?3 AND kind = ?4";
    let named = params![
        key.workspace(),
        key.collection(),
        key.generation(),
        place.code()
    ];
    let found = conn
        .prepare_cached(sql)?
        .query_row(named, |row| {
            Ok(Space {
                id: row.get(0)?,
                model: row.get(1)?,
                dimension: row.get::<_, i64>(2)?.max(0) as usize,
                points: row.get(3)?,
                reembedded: row.get(4)?,
            })
        })
        .optional()?;
    Ok(found)
}

/// Whether a space is still there.
pub(crate) fn is_there(conn: &Connection, space: i64) -> Result<bool, StorageError> {
    let sql = "SELECT 1 FROM space WHERE id = ?1";
    Ok(conn.prepare_cached(sql)?.exists([space])?)
}

/// Whether a generation of a collection was dropped.
pub(crate) fn has_ended(conn: &Connection, key: &CollectionKey) -> Result<bool, StorageError> {
    let sql = "SELECT incarnation FROM ended WHERE workspace = ?1 AND collection = ?2";
    let last: Option<i64> = conn
        .prepare_cached(sql)?
        .query_row([key.workspace(), key.collection()], |row| row.get(0))
        .optional()?;
    Ok(last.is_some_and(|last| key.generation() <= last))
}

/// Remembers that a collection was dropped up to a generation.
pub(crate) fn note_end(tx: &Transaction<'_>, key: &CollectionKey) -> Result<(), StorageError> {
    let sql = "INSERT INTO ended VALUES (?1, ?2, ?3) ON CONFLICT (workspace, collection)
               DO UPDATE SET incarnation = max(incarnation, excluded.incarnation)";
    tx.prepare_cached(sql)?.execute(params![
        key.workspace(),
        key.collection(),
        key.generation()
    ])?;
    Ok(())
}

/// What a workspace keeps.
pub(crate) fn usage(tx: &Transaction<'_>, workspace: &str) -> Result<Usage, StorageError> {
    let sql = "SELECT id FROM space WHERE workspace = ?1 AND bytes IS NULL";
    let unknown: Vec<i64> = tx
        .prepare_cached(sql)?
        .query_map([workspace], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for id in unknown {
        let (from, to) = range(id);
        let sql = "UPDATE space SET bytes =
              (SELECT coalesce(sum(octet_length(vector) + coalesce(octet_length(text), 0)), 0) FROM point WHERE id >= ?2 AND id < ?3)
            + (SELECT coalesce(sum(octet_length(body)), 0) FROM subject WHERE id >= ?2 AND id < ?3)
            + (SELECT coalesce(sum(octet_length(body)), 0) FROM facet WHERE id >= ?2 AND id < ?3)
            WHERE id = ?1";
        tx.prepare_cached(sql)?.execute([id, from, to])?;
    }
    // What is staged takes the place of what serves: of both the larger counts, and what is staged alone counts with what serves.
    let sql = "SELECT coalesce(sum(points), 0), coalesce(sum(bytes), 0) FROM
               (SELECT max(max(points), sum(iif(kind < 100, points, fresh))) AS points,
                       max(max(bytes), sum(iif(kind < 100, bytes, fresh_bytes))) AS bytes
                FROM space WHERE workspace = ?1
                GROUP BY collection, incarnation, kind % 100)";
    let held = tx.prepare_cached(sql)?.query_row([workspace], |row| {
        Ok(Usage {
            items: row.get::<_, i64>(0)?.unsigned_abs(),
            bytes: row.get::<_, i64>(1)?.unsigned_abs(),
        })
    })?;
    Ok(held)
}

/// Row id of a number within a space.
pub(crate) fn row_id(space: i64, number: u32) -> i64 {
    space << 32 | i64::from(number)
}

/// Number of a row id within its space.
pub(crate) fn number(id: i64) -> u32 {
    (id & 0xffff_ffff) as u32
}

/// Row ids of a space: from, to (not included).
pub(crate) fn range(space: i64) -> (i64, i64) {
    (space << 32, (space + 1) << 32)
}

/// A vector as bytes: little-endian `f32`, as its model made it.
pub(crate) fn pack(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|part| part.to_le_bytes()).collect()
}

/// Reads bytes of [`pack`] into `vector`.
pub(crate) fn unpack(bytes: &[u8], vector: &mut Vec<f32>) {
    vector.clear();
    let parts = bytes.chunks_exact(4);
    vector.extend(parts.map(|part| f32::from_le_bytes([part[0], part[1], part[2], part[3]])));
}
