//! Summaries that were made again, in the ledger's file.

use tg_storage::rusqlite::{Connection, OptionalExtension, Transaction, params};
use tg_storage::{StorageError, query_rows};

use super::json::{read_json, write_json};
use crate::store::summaries::{MOST_REMADE, Remade};

/// Those of a step, in the order in which they were made.
pub(super) fn of(conn: &Connection, run: &str, step: u32) -> Result<Vec<Remade>, StorageError> {
    let sql = "SELECT text FROM remade WHERE run = ?1 AND step = ?2 ORDER BY created_ms, request";
    let texts: Vec<String> = query_rows(conn, sql, params![run, step], |row| row.get(0))?;
    let all = texts.into_iter().map(|text| read_json(Some(text)));
    let all: Vec<Option<Remade>> = all.collect::<Result<_, _>>()?;
    Ok(all.into_iter().flatten().collect())
}

/// Keeps one of a step; the first of a request stands.
pub(super) fn keep(
    tx: &Transaction<'_>,
    (run, step): (&str, u32),
    remade: Remade,
) -> Result<Option<Remade>, StorageError> {
    let all = of(tx, run, step)?;
    let full = all.len() >= MOST_REMADE;
    let mut all = all.into_iter();
    if let Some(known) = all.find(|known| known.request == remade.request) {
        return Ok(Some(known));
    }
    if full {
        return Ok(None);
    }
    tx.prepare_cached(
        "INSERT INTO remade (run, step, request, text, created_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![
        run,
        step,
        remade.request,
        write_json(&remade)?,
        remade.at_ms
    ])?;
    Ok(Some(remade))
}

/// The collection of a trace, where its end is noted.
pub(super) fn traced_in(
    conn: &Connection,
    workspace: &str,
    run: &str,
) -> Result<Option<String>, StorageError> {
    let collection = conn
        .prepare_cached("SELECT collection FROM ended WHERE workspace = ?1 AND run = ?2")?
        .query_row([workspace, run], |row| row.get(0))
        .optional()?;
    Ok(collection)
}
