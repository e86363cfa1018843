//! How runs ended, and the heads that were signed over them, in the ledger's file.

use tg_provenance::Ended;
use tg_storage::rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use tg_storage::{StorageError, query_rows};

use crate::store::{HeadKey, KEEP_HEADS, LastHeads, PURGE, RunEnd, SignedHead};

/// Notes how a run ended; the first end stands.
pub(super) fn note(tx: &Transaction<'_>, end: &RunEnd, now_ms: i64) -> Result<(), StorageError> {
    let RunEnd {
        workspace,
        day,
        ended,
        ..
    } = end;
    tx.prepare_cached(
        "INSERT OR IGNORE INTO ended (workspace, run, day, number, collection, hash, ended_ms)
         VALUES (?1, ?2, ?3,
           (SELECT COALESCE(MAX(number), 0) + 1 FROM ended WHERE workspace = ?1 AND day = ?3),
           ?4, ?5, ?6)",
    )?
    .execute(params![
        workspace,
        ended.run,
        day,
        ended.collection,
        ended.hash,
        now_ms
    ])?;
    Ok(())
}

/// Runs of a day by their numbers.
pub(super) fn ended(
    conn: &Connection,
    workspace: &str,
    day: &str,
    after: i64,
    most: usize,
) -> Result<Vec<Ended>, StorageError> {
    let sql = "SELECT run, collection, hash FROM ended
               WHERE workspace = ?1 AND day = ?2 AND number > ?3 ORDER BY number LIMIT ?4";
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    query_rows(conn, sql, params![workspace, day, after, most], |row| {
        Ok(Ended {
            run: row.get(0)?,
            collection: row.get(1)?,
            hash: row.get(2)?,
        })
    })
}

/// The last head of a workspace, and of a day.
pub(super) fn last(
    conn: &Connection,
    workspace: &str,
    day: &str,
) -> Result<LastHeads, StorageError> {
    let mut last = conn.prepare_cached(
        "SELECT number, day, text, signature FROM head WHERE workspace = ?1
         ORDER BY number DESC LIMIT 1",
    )?;
    let mut of_day = conn.prepare_cached(
        "SELECT number, day, text, signature FROM head WHERE workspace = ?1 AND day = ?2
         ORDER BY number DESC LIMIT 1",
    )?;
    Ok(LastHeads {
        last: last.query_row([workspace], head).optional()?,
        of_day: of_day.query_row([workspace, day], head).optional()?,
    })
}

fn head(row: &Row<'_>) -> Result<SignedHead, tg_storage::rusqlite::Error> {
    Ok(SignedHead {
        number: row.get(0)?,
        day: row.get(1)?,
        text: row.get(2)?,
        signature: row.get(3)?,
    })
}

/// Keeps a head unless its number is taken.
pub(super) fn keep(
    tx: &Transaction<'_>,
    workspace: &str,
    head: &SignedHead,
) -> Result<bool, StorageError> {
    let kept = tx
        .prepare_cached(
            "INSERT OR IGNORE INTO head (workspace, number, day, text, signature)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            workspace,
            head.number,
            head.day,
            head.text,
            head.signature
        ])?;
    tx.prepare_cached("DELETE FROM head WHERE workspace = ?1 AND number <= ?2")?
        .execute(params![workspace, head.number - KEEP_HEADS])?;
    Ok(kept > 0)
}

/// The key that is kept, which may be this one.
pub(super) fn key(tx: &Transaction<'_>, new: &[u8]) -> Result<Vec<u8>, StorageError> {
    tx.prepare_cached("INSERT OR IGNORE INTO head_key (id, pkcs8) VALUES (1, ?1)")?
        .execute([new])?;
    let kept = tx.query_row("SELECT pkcs8 FROM head_key", [], |row| row.get(0))?;
    Ok(kept)
}

/// Puts another key in the place of one that signs, of which what verifies is kept.
pub(super) fn rotate_key(
    tx: &Transaction<'_>,
    old: &[u8],
    verifies: &str,
    new: &[u8],
) -> Result<bool, StorageError> {
    let changed = tx
        .prepare_cached("UPDATE head_key SET pkcs8 = ?2 WHERE pkcs8 = ?1")?
        .execute([old, new])?;
    if changed == 0 {
        return Ok(false);
    }
    tx.prepare_cached("INSERT INTO head_key_before (pem) VALUES (?1)")?
        .execute([verifies])?;
    Ok(true)
}

/// What verifies what keys before signed.
pub(super) fn keys_before(conn: &Connection) -> Result<Vec<HeadKey>, StorageError> {
    let sql = "SELECT pem, revoked_from FROM head_key_before ORDER BY number DESC";
    query_rows(conn, sql, [], |row| {
        Ok(HeadKey {
            pem: row.get(0)?,
            revoked_from: row.get(1)?,
        })
    })
}

/// Revokes one of them; of two instants the earlier stands.
pub(super) fn revoke_key(
    tx: &Transaction<'_>,
    pem: &str,
    from: &str,
) -> Result<bool, StorageError> {
    let known = tx
        .prepare_cached(
            "UPDATE head_key_before SET revoked_from =
               CASE revoked_from WHEN '' THEN ?2 ELSE min(revoked_from, ?2) END WHERE pem = ?1",
        )?
        .execute([pem, from])?;
    Ok(known > 0)
}

/// Removes ends that are older; whether there are more.
pub(super) fn purge(tx: &Transaction<'_>, before_ms: i64) -> Result<bool, StorageError> {
    let gone = tx
        .prepare_cached(
            "DELETE FROM ended WHERE (workspace, run) IN
           (SELECT workspace, run FROM ended WHERE ended_ms < ?1 ORDER BY ended_ms LIMIT ?2)",
        )?
        .execute(params![before_ms, PURGE])?;
    Ok(gone as i64 >= PURGE)
}

/// Removes some of what belongs to a workspace. `false` when there was none.
pub(super) fn purge_some(tx: &Transaction<'_>, workspace: &str) -> Result<bool, StorageError> {
    let ends = tx
        .prepare_cached(
            "DELETE FROM ended WHERE workspace = ?1 AND run IN
               (SELECT run FROM ended WHERE workspace = ?1 LIMIT ?2)",
        )?
        .execute(params![workspace, PURGE])?;
    let heads = tx
        .prepare_cached("DELETE FROM head WHERE workspace = ?1")?
        .execute([workspace])?;
    Ok(ends + heads > 0)
}
