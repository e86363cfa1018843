//! What a change of the file did, and how spaces end.

use tg_storage::StorageError;
use tg_storage::rusqlite::{ToSql, Transaction, params};

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
    /// It came too late: nothing was kept.
    pub(super) late: bool,
}

/// By how much a space has less.
#[derive(Debug, Default)]
pub(super) struct Less {
    points: i64,
    bytes: i64,
    fresh: i64,
    fresh_bytes: i64,
}

impl Less {
    /// A point is gone, and perhaps what it stood for.
    pub(super) fn point(&mut self, bytes: i64, subject: i64, fresh: bool) {
        self.points += 1;
        self.bytes += bytes + subject;
        if fresh {
            self.fresh += 1;
            self.fresh_bytes += bytes;
        }
    }

    /// Notes it.
    pub(super) fn take(&self, tx: &Transaction<'_>, space: i64) -> Result<(), StorageError> {
        let sql = "UPDATE space SET points = points - ?2, bytes = bytes - ?3,
                   fresh = max(fresh - ?4, 0), fresh_bytes = max(fresh_bytes - ?5, 0)
                   WHERE id = ?1";
        tx.prepare_cached(sql)?.execute(params![
            space,
            self.points,
            self.bytes,
            self.fresh,
            self.fresh_bytes
        ])?;
        Ok(())
    }
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
