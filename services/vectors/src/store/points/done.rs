//! What a change of the file did, and how spaces end.

use tg_storage::StorageError;
use tg_storage::rusqlite::{ToSql, Transaction};

use crate::engine::index::Change;

/// What a change did to a space.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Done {
    /// Changes by space, in order.
    pub(super) changes: Vec<(i64, Change)>,
    /// Spaces that are no more.
    pub(super) gone: Vec<i64>,
    /// Points that are new or changed, or were removed.
    pub(super) count: usize,
}

/// Ends the spaces that a statement returns, with their points. What they held is purged later.
pub(super) fn drop_where(
    tx: &Transaction<'_>,
    sql: &str,
    named: &[&dyn ToSql],
) -> Result<Done, StorageError> {
    let ended: Vec<(i64, i64)> = tx
        .prepare_cached(sql)?
        .query_map(named, |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    let mut done = Done::default();
    for (space, points) in ended {
        tx.prepare_cached("INSERT INTO dropped VALUES (?1)")?
            .execute([space])?;
        done.gone.push(space);
        done.count += points.max(0) as usize;
    }
    Ok(done)
}
