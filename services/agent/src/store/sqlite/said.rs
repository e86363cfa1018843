//! What was said of steps that are under way, piece by piece.

use tg_storage::StorageError;
use tg_storage::rusqlite::{Transaction, params};

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

/// The pieces of a range, if all are there; those after it are removed.
pub(super) fn heard(
    tx: &Transaction<'_>,
    run: &str,
    step: u32,
    from: u64,
    until: u64,
) -> Result<Option<Vec<Piece>>, StorageError> {
    tx.prepare_cached("DELETE FROM said WHERE run = ?1 AND step = ?2 AND seq >= ?3")?
        .execute(params![run, step, number(until)])?;
    let mut query = tx.prepare_cached(
        "SELECT kind, text FROM said WHERE run = ?1 AND step = ?2 AND seq >= ?3
         ORDER BY seq",
    )?;
    let rows = query.query_map(params![run, step, number(from)], |row| {
        Ok((row.get::<_, u8>(0)?, row.get(1)?))
    })?;
    let mut pieces = Vec::new();
    for row in rows {
        let (kind, text) = row?;
        let Some(kind) = PieceKind::ALL.get(usize::from(kind)).copied() else {
            return Ok(None);
        };
        pieces.push(Piece { kind, text });
    }
    let all = u64::try_from(pieces.len()) == Ok(until.saturating_sub(from));
    Ok(all.then_some(pieces))
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
