//! The file of the keyword index. All SQL over it is here. A collection's full-text table is named by the
//! collection's number, never by its name.
//!
//! `bytes` are of the chunks' texts. Those are not kept, so that chunks of the release before count nothing until they come
//! again.

use std::path::Path;

use sha2::{Digest, Sha256};
use tg_storage::rusqlite::{Connection, OptionalExtension, Transaction, params};
use tg_storage::{Database, Durability, OneWorkspace, StorageError, query_rows};

use crate::engine::point::hash;
use crate::engine::words::indexed;
use crate::error::VectorError;
use crate::store::points::schema::{has_ended, note_end, number, range, row_id};
use tg_collections::{CollectionKey, Quota, Usage, Words, WriteKind};

use crate::store::{ChunkText, KeywordHit};

const MIGRATIONS: &[&str] = &[
    "
CREATE TABLE space (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace TEXT NOT NULL,
    collection TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    chunks INTEGER NOT NULL DEFAULT 0,
    next INTEGER NOT NULL DEFAULT 1,
    UNIQUE (workspace, collection, incarnation)
) STRICT;
CREATE TABLE ended (
    workspace TEXT NOT NULL,
    collection TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    PRIMARY KEY (workspace, collection)
) STRICT, WITHOUT ROWID;
CREATE TABLE dropped (space INTEGER PRIMARY KEY) STRICT;
CREATE TABLE chunk (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    chunk TEXT NOT NULL,
    digest BLOB NOT NULL
) STRICT;
",
    "
ALTER TABLE space ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE chunk ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
",
];

/// How a backup keeps one workspace of the keyword index.
pub const ONE_WORKSPACE: OneWorkspace = OneWorkspace::new(
    MIGRATIONS,
    &[
        "DELETE FROM space WHERE workspace <> ?1",
        "DELETE FROM ended WHERE workspace <> ?1",
        "DELETE FROM chunk WHERE (id >> 32) NOT IN (SELECT id FROM space)",
        "DELETE FROM dropped",
    ],
)
.and(drop_words);

/// How the quota is told.
const WORDS: Words = Words {
    place: "the keyword index",
    items: "chunks",
    bytes: "of text",
};

/// Rows of a dropped collection that are removed in a step.
const STEP: i64 = 2_000;

pub(super) fn open(path: &Path, durability: Durability) -> Result<Database, StorageError> {
    Database::open(path, MIGRATIONS, durability)
}

pub(super) fn in_memory() -> Result<Database, StorageError> {
    Database::in_memory(MIGRATIONS)
}

fn space(conn: &Connection, key: &CollectionKey) -> Result<Option<(i64, i64)>, StorageError> {
    let sql = "SELECT id, chunks FROM space
               WHERE workspace = ?1 AND collection = ?2 AND incarnation = ?3";
    let named = params![key.workspace(), key.collection(), key.generation()];
    let found = conn
        .prepare_cached(sql)?
        .query_row(named, |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(found)
}

pub(super) fn count(conn: &Connection, key: &CollectionKey) -> Result<usize, StorageError> {
    Ok(space(conn, key)?.map_or(0, |(_, chunks)| chunks.max(0) as usize))
}

fn created(tx: &Transaction<'_>, key: &CollectionKey) -> Result<i64, StorageError> {
    if let Some((id, _)) = space(tx, key)? {
        return Ok(id);
    }
    let named = params![key.workspace(), key.collection(), key.generation()];
    let id = tx
        .prepare_cached(
            "INSERT INTO space (workspace, collection, incarnation) VALUES (?1, ?2, ?3)",
        )?
        .insert(named)?;
    tx.execute_batch(&format!(
        "CREATE VIRTUAL TABLE words_{id} USING fts5(body, content='', contentless_delete=1)"
    ))?;
    Ok(id)
}

/// Indexes a chunk; one of the same id is replaced. `false` when it is there already, just so. An error of the inner
/// kind means that nothing was changed.
pub(super) fn put(
    tx: &Transaction<'_>,
    quota: Quota,
    key: &CollectionKey,
    write_kind: WriteKind,
    chunk: &ChunkText,
) -> Result<Result<bool, VectorError>, StorageError> {
    if write_kind == WriteKind::Tracked && has_ended(tx, key)? {
        return Ok(Ok(false));
    }
    if let Err(refused) = room(tx, quota, key, chunk)? {
        return Ok(Err(refused));
    }
    let space = created(tx, key)?;
    let hash = hash(space, &chunk.id);
    let digest: [u8; 32] = Sha256::digest(chunk.text.as_bytes()).into();
    let bytes = chunk.text.len() as i64;
    let known: Option<(i64, bool, i64)> = tx
        .prepare_cached("SELECT id, digest = ?2, bytes FROM chunk WHERE hash = ?1")?
        .query_row(params![&hash[..], &digest[..]], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    let id = match known {
        Some((_, true, _)) => return Ok(Ok(false)),
        Some((id, false, before)) => {
            forget_words(tx, space, id)?;
            tx.prepare_cached("UPDATE chunk SET digest = ?2, bytes = ?3 WHERE id = ?1")?
                .execute(params![id, &digest[..], bytes])?;
            tx.prepare_cached("UPDATE space SET bytes = bytes + ?2 WHERE id = ?1")?
                .execute([space, bytes - before])?;
            id
        }
        None => {
            let sql = "UPDATE space SET next = next + 1, chunks = chunks + 1, bytes = bytes + ?2
                       WHERE id = ?1 RETURNING next - 1";
            let next: u32 = tx
                .prepare_cached(sql)?
                .query_row([space, bytes], |row| row.get(0))?;
            let id = row_id(space, next);
            tx.prepare_cached("INSERT INTO chunk VALUES (?1, ?2, ?3, ?4, ?5)")?
                .execute(params![id, &hash[..], chunk.id, &digest[..], bytes])?;
            id
        }
    };
    let sql = format!("INSERT INTO words_{space} (rowid, body) VALUES (?1, ?2)");
    tx.prepare_cached(&sql)?
        .execute(params![number(id), &*indexed(&chunk.text)])?;
    Ok(Ok(true))
}

/// Refuses a chunk that the workspace has no room for. One that is there already needs no more than its text has grown.
fn room(
    tx: &Transaction<'_>,
    quota: Quota,
    key: &CollectionKey,
    chunk: &ChunkText,
) -> Result<Result<(), VectorError>, StorageError> {
    let sql =
        "SELECT coalesce(sum(chunks), 0), coalesce(sum(bytes), 0) FROM space WHERE workspace = ?1";
    let held = tx
        .prepare_cached(sql)?
        .query_row([key.workspace()], |row| {
            Ok(Usage {
                items: row.get::<_, i64>(0)?.unsigned_abs(),
                bytes: row.get::<_, i64>(1)?.unsigned_abs(),
            })
        })?;
    let mut more = Usage {
        items: 1,
        bytes: chunk.text.len() as u64,
    };
    if quota.check(&WORDS, held, more).is_ok() {
        return Ok(Ok(()));
    }
    if let Some((space, _)) = space(tx, key)? {
        let there: Option<i64> = tx
            .prepare_cached("SELECT bytes FROM chunk WHERE hash = ?1")?
            .query_row([&hash(space, &chunk.id)[..]], |row| row.get(0))
            .optional()?;
        if let Some(bytes) = there {
            more.items = 0;
            more.bytes = more.bytes.saturating_sub(bytes.unsigned_abs());
        }
    }
    Ok(quota.check(&WORDS, held, more).map_err(VectorError::Quota))
}

fn forget_words(tx: &Transaction<'_>, space: i64, id: i64) -> Result<(), StorageError> {
    let sql = format!("DELETE FROM words_{space} WHERE rowid = ?1");
    tx.prepare_cached(&sql)?.execute([number(id)])?;
    Ok(())
}

/// Retracts chunks; how many were there.
pub(super) fn retract(
    tx: &Transaction<'_>,
    key: &CollectionKey,
    chunks: &[String],
) -> Result<usize, StorageError> {
    let Some((space, _)) = space(tx, key)? else {
        return Ok(0);
    };
    let (mut count, mut bytes) = (0, 0);
    for chunk in chunks {
        let gone: Option<(i64, i64)> = tx
            .prepare_cached("DELETE FROM chunk WHERE hash = ?1 RETURNING id, bytes")?
            .query_row([&hash(space, chunk)[..]], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        if let Some((id, had)) = gone {
            forget_words(tx, space, id)?;
            count += 1;
            bytes += had;
        }
    }
    let sql = "UPDATE space SET chunks = chunks - ?2, bytes = bytes - ?3 WHERE id = ?1";
    tx.prepare_cached(sql)?
        .execute(params![space, count as i64, bytes])?;
    Ok(count)
}

/// Ends all generations of a collection up to the key's; how many chunks they held.
pub(super) fn drop_collection(
    tx: &Transaction<'_>,
    key: &CollectionKey,
) -> Result<usize, StorageError> {
    let sql = "DELETE FROM space WHERE workspace = ?1 AND collection = ?2 AND incarnation <= ?3
               RETURNING id, chunks";
    let named = params![key.workspace(), key.collection(), key.generation()];
    let count = drop_where(tx, sql, named)?;
    note_end(tx, key)?;
    Ok(count)
}

/// Ends everything of a workspace.
pub(super) fn drop_workspace(tx: &Transaction<'_>, workspace: &str) -> Result<usize, StorageError> {
    let sql = "DELETE FROM space WHERE workspace = ?1 RETURNING id, chunks";
    let count = drop_where(tx, sql, params![workspace])?;
    tx.prepare_cached("DELETE FROM ended WHERE workspace = ?1")?
        .execute([workspace])?;
    Ok(count)
}

fn drop_where(
    tx: &Transaction<'_>,
    sql: &str,
    named: &[&dyn tg_storage::rusqlite::ToSql],
) -> Result<usize, StorageError> {
    let ended: Vec<(i64, i64)> = tx
        .prepare_cached(sql)?
        .query_map(named, |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    let mut count = 0;
    for (space, chunks) in ended {
        tx.prepare_cached("INSERT INTO dropped VALUES (?1)")?
            .execute([space])?;
        count += chunks.max(0) as usize;
    }
    Ok(count)
}

/// The best chunks for an expression, best first.
pub(super) fn search(
    conn: &Connection,
    key: &CollectionKey,
    expression: &str,
    limit: usize,
) -> Result<Vec<KeywordHit>, StorageError> {
    let Some((space, _)) = space(conn, key)? else {
        return Ok(Vec::new());
    };
    let sql = format!(
        "SELECT rowid, rank FROM words_{space} WHERE words_{space} MATCH ?1
         ORDER BY rank, rowid LIMIT ?2"
    );
    let found: Vec<(u32, f64)> = conn
        .prepare_cached(&sql)?
        .query_map(params![expression, limit as i64], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?
        .collect::<Result<_, _>>()?;
    let mut name = conn.prepare_cached("SELECT chunk FROM chunk WHERE id = ?1")?;
    found
        .into_iter()
        .map(|(row, rank)| {
            let id = name.query_row([row_id(space, row)], |row| row.get(0))?;
            Ok(KeywordHit { id, score: -rank })
        })
        .collect()
}

/// Purges a little of what dropped collections held; `false` when nothing is left.
pub(super) fn purge_some(tx: &Transaction<'_>) -> Result<bool, StorageError> {
    let space: Option<i64> = tx
        .prepare_cached("SELECT min(space) FROM dropped")?
        .query_row([], |row| row.get(0))?;
    let Some(space) = space else {
        return Ok(false);
    };
    let (from, to) = range(space);
    let sql = "DELETE FROM chunk WHERE id IN
               (SELECT id FROM chunk WHERE id >= ?1 AND id < ?2 LIMIT ?3)";
    if tx.prepare_cached(sql)?.execute(params![from, to, STEP])? == 0 {
        tx.execute_batch(&format!("DROP TABLE IF EXISTS words_{space}"))?;
        tx.prepare_cached("DELETE FROM dropped WHERE space = ?1")?
            .execute([space])?;
    }
    Ok(true)
}

/// Removes the full-text tables that belong to no collection.
fn drop_words(tx: &Transaction<'_>) -> Result<(), StorageError> {
    let sql = "SELECT name FROM sqlite_master
               WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%'
               AND name NOT IN (SELECT 'words_' || id FROM space)";
    for name in query_rows(tx, sql, [], |row| row.get::<_, String>(0))? {
        tx.execute_batch(&format!("DROP TABLE {name}"))?;
    }
    Ok(())
}
