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
    // What takes the place of a document counts for what it has more.
    let mut query = conn.prepare_cached(
        "SELECT coalesce(sum(document.number IS NULL), 0),
                coalesce(sum(max(upload.size - coalesce(content.size, 0), 0)), 0)
         FROM upload
         LEFT JOIN document ON document.workspace = upload.workspace
              AND document.id = upload.document AND upload.replaces
         LEFT JOIN content ON content.number = document.content
         WHERE upload.workspace = ?1 AND upload.object = ''",
    )?;
    let (uploads, announced): (i64, i64) =
        query.query_row([workspace], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let sum = |one: i64, other: i64| one.max(0) as u64 + other.max(0) as u64;
    Ok(Usage {
        documents: sum(documents, uploads),
        bytes: sum(bytes, announced),
    })
}

/// What a workspace would keep besides if documents had these ids and bytes of content.
pub(crate) fn more(
    conn: &Connection,
    workspace: &str,
    adds: &[(String, u64)],
) -> Result<Usage, StorageError> {
    let mut query = conn.prepare_cached(
        "SELECT coalesce(content.size, 0) FROM document
         JOIN content ON content.number = document.content
         WHERE document.workspace = ?1 AND document.id = ?2",
    )?;
    let mut more = Usage::default();
    for (id, bytes) in adds {
        let held: Option<i64> = query
            .query_row([workspace, id], |row| row.get(0))
            .optional()?;
        more.documents += u64::from(held.is_none());
        more.bytes += bytes.saturating_sub(held.unwrap_or(0).unsigned_abs());
    }
    Ok(more)
}
