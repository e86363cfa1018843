//! Streamed pieces of steps that are under way.

use tg_storage::rusqlite::{Connection, Transaction, params};
use tg_storage::{StorageError, query_rows};

use crate::store::{Piece, PieceKind};

/// Keeps pieces under their numbers.
pub(super) fn say(
    tx: &Transaction<'_>,
    run: &str,
    step: u32,
    seq: u64,
    pieces: &[Piece],
    now_ms: i64,
) -> Result<(), StorageError> {
    let mut insert = tx.prepare_cached(
        "INSERT OR REPLACE INTO said (run, step, seq, kind, text, created_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for (seq, piece) in (number(seq)..).zip(pieces) {
        let kind = piece.kind as u8;
        insert.execute(params![run, step, seq, kind, piece.text, now_ms])?;
    }
    Ok(())
}

/// All pieces of a step.
pub(super) fn all(conn: &Connection, run: &str, step: u32) -> Result<Vec<Piece>, StorageError> {
    let sql = "SELECT kind, text FROM said WHERE run = ?1 AND step = ?2 ORDER BY seq";
    let rows = query_rows(conn, sql, params![run, step], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    Ok(read(rows).unwrap_or_default())
}

/// `None` if one is of a kind that is not known.
fn read(rows: Vec<(u8, String)>) -> Option<Vec<Piece>> {
    let pieces = rows.into_iter().map(|(kind, text)| {
        let kind = PieceKind::ALL.get(usize::from(kind)).copied()?;
        Some(Piece { kind, text })
    });
    pieces.collect()
}

/// Forgets the pieces of a step.
pub(super) fn forget(tx: &Transaction<'_>, run: &str, step: u32) -> Result<(), StorageError> {
    tx.prepare_cached("DELETE FROM said WHERE run = ?1 AND step = ?2")?
        .execute(params![run, step])?;
    Ok(())
}

fn number(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}
