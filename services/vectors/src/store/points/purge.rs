//! Purging what dropped spaces held, a little at a time, so that a drop itself is quick and others
//! wait for no more than a step.

use tg_storage::StorageError;
use tg_storage::rusqlite::{OptionalExtension, Transaction, params};

use super::schema::range;

/// Rows removed in a step.
const STEP: i64 = 2_000;

/// One step; `false` when nothing is left to do.
pub(super) fn step(tx: &Transaction<'_>) -> Result<bool, StorageError> {
    let space: Option<i64> = tx
        .prepare_cached("SELECT min(space) FROM dropped")?
        .query_row([], |row| row.get(0))
        .optional()?
        .flatten();
    let Some(space) = space else {
        return Ok(false);
    };
    let (from, to) = range(space);
    for table in ["point", "subject", "source", "facet"] {
        let sql = format!(
            "DELETE FROM {table} WHERE id IN
             (SELECT id FROM {table} WHERE id >= ?1 AND id < ?2 LIMIT ?3)"
        );
        if tx.prepare_cached(&sql)?.execute(params![from, to, STEP])? > 0 {
            return Ok(true);
        }
    }
    let sql = "DELETE FROM facet_entry WHERE space = ?1 AND (field, name, value, facet) IN
               (SELECT field, name, value, facet FROM facet_entry WHERE space = ?1 LIMIT ?2)";
    if tx.prepare_cached(sql)?.execute(params![space, STEP])? > 0 {
        return Ok(true);
    }
    tx.prepare_cached("DELETE FROM dropped WHERE space = ?1")?
        .execute([space])?;
    Ok(true)
}
