//! Which store a file is: an id made when the file is created, so that processes can tell one store from another
//! of the same name.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use crate::{StorageError, connection};

/// Gives a file its identity, once.
pub(crate) fn ensure(conn: &Connection) -> Result<(), StorageError> {
    conn.execute_batch(
        "CREATE TABLE IF NOT EXISTS store_identity (
             one INTEGER PRIMARY KEY CHECK (one = 1),
             id TEXT NOT NULL
         );
         INSERT OR IGNORE INTO store_identity VALUES (1, lower(hex(randomblob(16))));",
    )?;
    Ok(())
}

/// The identity of a store's file: 32 hex digits. `None` where the file was never opened as a
/// [`crate::Database`]. Blocks.
///
/// # Errors
/// When the file cannot be read.
pub fn identity_of(path: &Path) -> Result<Option<String>, StorageError> {
    if !path.exists() {
        return Ok(None);
    }
    let conn = connection::reader(path)?;
    let known: Option<i64> = conn
        .query_row(
            "SELECT 1 FROM sqlite_master WHERE name = 'store_identity'",
            [],
            |row| row.get(0),
        )
        .optional()?;
    if known.is_none() {
        return Ok(None);
    }
    let id = conn.query_row("SELECT id FROM store_identity", [], |row| row.get(0));
    Ok(id.optional()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Database, Durability};

    #[test]
    fn a_file_keeps_its_identity_and_another_has_another() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one.sqlite"), dir.path().join("two.sqlite"));
        assert_eq!(identity_of(&one).unwrap(), None);
        let open = |path: &Path| drop(Database::open(path, &[], Durability::Process).unwrap());
        open(&one);
        open(&two);
        let first = identity_of(&one).unwrap().unwrap();
        assert_eq!(first.len(), 32);
        open(&one);
        assert_eq!(identity_of(&one).unwrap(), Some(first.clone()));
        assert_ne!(identity_of(&two).unwrap(), Some(first));
    }
}
