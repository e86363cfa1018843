//! How a backup keeps one workspace of the library, and which files of content it speaks for.

use std::collections::BTreeSet;
use std::path::Path;

use tg_storage::{OneWorkspace, StorageError, query_rows, read_file};

use super::fingerprints;
use super::schema::MIGRATIONS;

/// Uploads in progress go, of the workspace too: their parts are files, and a client begins one anew. So do the ids of
/// questions, which do not say whose they are.
pub const ONE_WORKSPACE: OneWorkspace = OneWorkspace::new(
    MIGRATIONS,
    &[
        "DELETE FROM document WHERE workspace <> ?1",
        "DELETE FROM content WHERE number NOT IN (SELECT content FROM document)",
        "UPDATE content SET refs = used.count
         FROM (SELECT content AS number, count(*) AS count FROM document GROUP BY content) AS used
         WHERE content.number = used.number",
        "DELETE FROM upload",
        "DELETE FROM upload_part",
        "DELETE FROM request",
        "DELETE FROM run WHERE workspace <> ?1",
        "DELETE FROM run_reader WHERE run NOT IN (SELECT number FROM run)",
        "DELETE FROM run_pair WHERE run NOT IN (SELECT number FROM run)",
        "DELETE FROM run_fault WHERE run NOT IN (SELECT number FROM run)",
        "DELETE FROM run_effect WHERE run NOT IN (SELECT number FROM run)",
        "DELETE FROM target WHERE workspace <> ?1",
        "DELETE FROM made WHERE target NOT IN (SELECT number FROM target)",
        "DELETE FROM outbox WHERE workspace <> ?1",
        "DELETE FROM collection WHERE workspace <> ?1",
        "DELETE FROM tombstone WHERE workspace <> ?1",
        "DELETE FROM usage WHERE workspace <> ?1",
    ],
)
.and(fingerprints::forget_unused);

/// Hashes, in hex, of the content that the library of a file has in files. Blocks, and takes no lock.
///
/// # Errors
/// When the file cannot be read.
pub fn files_of_content(file: &Path) -> Result<BTreeSet<String>, StorageError> {
    read_file(file, |conn| {
        let sql = "SELECT lower(hex(hash)) FROM content WHERE body IS NULL";
        let hashes = query_rows(conn, sql, [], |row| row.get::<_, String>(0))?;
        Ok(hashes.into_iter().collect())
    })
}
