//! What a workspace keeps, whether it may keep more, and which requests were done already.

use tg_collections::{Quota, Usage, Words};
use tg_storage::rusqlite::Connection;
use tg_storage::{DoneOnce, StorageError};

/// How the quota is told.
const WORDS: Words = Words {
    place: "the sessions",
    items: "sessions",
    bytes: "of messages and agents",
};
/// What a row counts beside its texts.
const ROW: usize = 512;

/// Bytes that a row with these texts counts.
pub(super) fn row(texts: &[&str]) -> i64 {
    let texts: usize = texts.iter().map(|text| text.len()).sum();
    i64::try_from(ROW + texts).unwrap_or(i64::MAX)
}

/// Whether the workspace may keep so many sessions and bytes more.
pub(super) fn check(
    conn: &Connection,
    quota: &Quota,
    items: u64,
    bytes: i64,
) -> Result<(), StorageError> {
    let held = conn
        .prepare_cached("SELECT sessions, bytes FROM kept")?
        .query_row([], |row| {
            let number = |at: usize| {
                Ok::<_, tg_storage::rusqlite::Error>(row.get::<_, i64>(at)?.max(0).unsigned_abs())
            };
            Ok(Usage {
                items: number(0)?,
                bytes: number(1)?,
            })
        })?;
    let more = Usage {
        items,
        bytes: bytes.max(0).unsigned_abs(),
    };
    let checked = quota.check(&WORDS, held, more);
    checked.map_err(StorageError::Refused)
}

/// What a request did. The file is of one workspace.
fn work(request: &str, id: &str) -> DoneOnce {
    DoneOnce {
        owner: String::new(),
        purpose: "request".to_owned(),
        record: format!("{request} {id}"),
    }
}

/// Whether a request did its work on something already.
pub(super) fn is_done(conn: &Connection, request: &str, id: &str) -> Result<bool, StorageError> {
    work(request, id).is_done(conn)
}

/// Remembers that a request did its work on something.
pub(super) fn note_done(conn: &Connection, request: &str, id: &str) -> Result<(), StorageError> {
    work(request, id).note(conn)
}

/// Forgets which requests did their work on something: it can be done again.
pub(super) fn forget_done(conn: &Connection, id: &str) -> Result<(), StorageError> {
    work("", id).forget_endings(conn)
}

/// Removes something, once for each request: one that comes again finds it done.
pub(super) fn once(
    conn: &Connection,
    request: &str,
    id: &str,
    remove: impl FnOnce() -> Result<bool, StorageError>,
) -> Result<bool, StorageError> {
    if is_done(conn, request, id)? {
        return Ok(true);
    }
    let gone = remove()?;
    if gone {
        note_done(conn, request, id)?;
    }
    Ok(gone)
}
