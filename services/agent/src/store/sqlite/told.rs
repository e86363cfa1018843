//! What runs have streamed, part by part, to be read again.

use tg_storage::rusqlite::{Connection, OptionalExtension, Transaction, params};
use tg_storage::{Database, StorageError};

use crate::store::Told;

/// Where a workspace has too many, this part of what it may have goes beyond that: so it is done now and then, not at each step.
const SPARE: u64 = 64;

/// How much is written to keep parts.
pub(super) fn bytes(told: &Told) -> usize {
    told.parts.iter().map(String::len).sum()
}

/// Keeps parts, but for those that are kept already: a step that is taken up again tells the same. Whether the workspace has too
/// many then, of which [`trim`] removes the oldest.
pub(super) fn keep(
    tx: &Transaction<'_>,
    run: &str,
    told: &Told,
    now_ms: i64,
) -> Result<bool, StorageError> {
    if told.parts.is_empty() {
        return Ok(false);
    }
    let end: Option<i64> = tx
        .prepare_cached(
            "SELECT first + count FROM told WHERE run = ?1 ORDER BY first DESC LIMIT 1",
        )?
        .query_row([run], |row| row.get(0))
        .optional()?;
    let known = end.map_or(0, number).saturating_sub(told.first);
    let known = usize::try_from(known).unwrap_or(usize::MAX);
    let Some(new) = told.parts.get(known..).filter(|new| !new.is_empty()) else {
        return Ok(false);
    };
    let first = told.first + known as u64;
    let text = new.join("\n");
    let bytes = text.len() as u64;
    if bytes > told.keep {
        return Ok(false);
    }
    tx.prepare_cached(
        "INSERT INTO told (run, first, count, parts, bytes, workspace, created_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        run,
        first as i64,
        new.len() as i64,
        text,
        bytes as i64,
        told.workspace,
        now_ms
    ])?;
    Ok(total(tx, &told.workspace)? > told.keep)
}

/// Bytes that are kept of a workspace.
fn total(tx: &Transaction<'_>, workspace: &str) -> Result<u64, StorageError> {
    let bytes: Option<i64> = tx
        .prepare_cached("SELECT bytes FROM told_total WHERE workspace = ?1")?
        .query_row([workspace], |row| row.get(0))
        .optional()?;
    Ok(bytes.map_or(0, number))
}

/// Removes the oldest of a workspace that has too many, on the writer's thread: nobody knows how many these are.
pub(super) async fn trim(
    db: &Database,
    too_many: bool,
    (workspace, keep): (String, u64),
) -> Result<(), StorageError> {
    match too_many {
        true => db.write(move |tx| bound(tx, &workspace, keep)).await,
        false => Ok(()),
    }
}

/// The oldest of a workspace go until the rest is small enough.
fn bound(tx: &Transaction<'_>, workspace: &str, keep: u64) -> Result<(), StorageError> {
    let most = keep - keep / SPARE;
    let mut oldest = tx.prepare_cached(
        "DELETE FROM told WHERE rowid =
           (SELECT rowid FROM told WHERE workspace = ?1 ORDER BY created_ms, rowid LIMIT 1)",
    )?;
    loop {
        if total(tx, workspace)? <= most || oldest.execute([workspace])? == 0 {
            return Ok(());
        }
    }
}

/// Parts from a number on, as far as there is no gap.
pub(super) fn read(
    conn: &Connection,
    run: &str,
    from: u64,
    bytes: usize,
) -> Result<Option<(u64, Vec<String>)>, StorageError> {
    let mut query = conn.prepare_cached(
        "SELECT first, count, parts FROM told WHERE run = ?1 AND first + count > ?2 ORDER BY first",
    )?;
    let mut rows = query.query(params![run, i64::try_from(from).unwrap_or(i64::MAX)])?;
    let mut found: Option<(u64, Vec<String>)> = None;
    let mut size = 0;
    while let Some(row) = rows.next()? {
        let (first, count, text) = (number(row.get(0)?), number(row.get(1)?), row.get_ref(2)?);
        let text = text
            .as_str()
            .map_err(|fault| StorageError::Corrupt(fault.to_string()))?;
        let (begin, parts) = found.get_or_insert_with(|| (first.max(from), Vec::new()));
        let next = *begin + parts.len() as u64;
        if first > next || size >= bytes {
            break;
        }
        let known = usize::try_from(next - first).unwrap_or(usize::MAX);
        for part in text.split('\n').skip(known) {
            if size >= bytes {
                break;
            }
            size += part.len();
            parts.push(part.to_owned());
        }
        if first + count > *begin + parts.len() as u64 {
            break;
        }
    }
    Ok(found)
}

fn number(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}
