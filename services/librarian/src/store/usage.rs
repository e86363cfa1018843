//! What each workspace keeps. Triggers of the schema count it.

use tg_storage::StorageError;
use tg_storage::rusqlite::{Connection, OptionalExtension};

use crate::engine::quota::Usage;

/// What a workspace keeps now, with what its uploads announced.
pub(crate) fn of(conn: &Connection, workspace: &str) -> Result<Usage, StorageError> {
    let mut query =
        conn.prepare_cached("SELECT documents, bytes FROM usage WHERE workspace = ?1")?;
    let kept = query.query_row([workspace], |row| Ok((row.get(0)?, row.get(1)?)));
    let (documents, bytes): (i64, i64) = kept.optional()?.unwrap_or_default();
    let mut query = conn.prepare_cached(
        "SELECT count(*), coalesce(sum(size), 0) FROM upload WHERE workspace = ?1 AND object = ''",
    )?;
    let (uploads, announced): (i64, i64) =
        query.query_row([workspace], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let sum = |one: i64, other: i64| one.max(0) as u64 + other.max(0) as u64;
    Ok(Usage {
        documents: sum(documents, uploads),
        bytes: sum(bytes, announced),
    })
}
