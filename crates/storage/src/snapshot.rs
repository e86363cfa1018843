//! A database as it was at one moment, copied beside the process that owns it. The owner keeps writing: SQLite keeps
//! the pages of that moment in the write-ahead log until the copy ends.

use std::fs::File;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use crate::{StorageError, connection};

/// All pages in one step: a copy in several would begin again at each commit of the owner.
const ALL_PAGES: std::ffi::c_int = -1;

/// A connection that can hold one moment of a database. Takes no owner's lock and blocks: it is for programs that do
/// nothing else meanwhile.
pub struct Snapshot {
    conn: Connection,
}

impl Snapshot {
    /// Opens a database that may belong to another process.
    ///
    /// # Errors
    /// The file is not there, cannot be read, or is not a database.
    pub fn open(path: &Path) -> Result<Self, StorageError> {
        Ok(Self {
            conn: connection::reader(path)?,
        })
    }

    /// Holds this moment: [`Self::copy`] copies what is committed now.
    ///
    /// # Errors
    /// A moment is already held, or the database cannot be read.
    pub fn hold(&self) -> Result<(), StorageError> {
        self.conn.execute_batch("BEGIN")?;
        // The transaction begins with its first read.
        self.conn
            .query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))?;
        Ok(())
    }

    /// Copies the moment that is held into a new file, and writes that to the disk. Lets go of the moment.
    ///
    /// # Errors
    /// [`StorageError::Full`] where there is no room, or the database cannot be read. The new file is not whole then.
    pub fn copy(self, to: &Path) -> Result<(), StorageError> {
        let mut copy = Connection::open(to)?;
        // The file counts only once it is whole: it needs no journal.
        copy.pragma_update(None, "journal_mode", "OFF")?;
        copy.pragma_update(None, "synchronous", "OFF")?;
        let step = Backup::new(&self.conn, &mut copy)?.step(ALL_PAGES)?;
        if step != StepResult::Done {
            return Err(StorageError::Failed(
                "the copy of a store did not end".to_owned(),
            ));
        }
        copy.close().map_err(|(_, error)| error)?;
        File::open(to)
            .and_then(|file| file.sync_all())
            .map_err(|error| StorageError::from_io(&error))
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Database, Durability, identity_of};

    const MIGRATIONS: &[&str] = &["CREATE TABLE note (number INTEGER PRIMARY KEY, text TEXT)"];

    async fn write(db: &Database, number: i64) {
        db.write(move |tx| {
            tx.execute(
                "INSERT INTO note VALUES (?1, ?2)",
                (number, "x".repeat(500)),
            )?;
            Ok(())
        })
        .await
        .unwrap();
    }

    async fn count(db: &Database) -> i64 {
        db.read(|conn| Ok(conn.query_row("SELECT count(*) FROM note", [], |row| row.get(0))?))
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn a_copy_is_the_moment_that_was_held_whatever_was_written_since() {
        let dir = tempfile::tempdir().unwrap();
        let (file, to) = (dir.path().join("a.sqlite"), dir.path().join("copy.sqlite"));
        let db = Database::open(&file, MIGRATIONS, Durability::Process).unwrap();
        for number in 0..100 {
            write(&db, number).await;
        }
        let held = Snapshot::open(&file).unwrap();
        held.hold().unwrap();
        for number in 100..5_000 {
            write(&db, number).await;
        }
        held.copy(&to).unwrap();
        assert_eq!(count(&db).await, 5_000);
        for beside in ["-wal", "-shm", "-journal"] {
            let name = dir.path().join(format!("copy.sqlite{beside}"));
            assert!(!name.exists(), "{beside}");
        }
        assert_eq!(identity_of(&to).unwrap(), identity_of(&file).unwrap());
        let copy = Database::open(&to, MIGRATIONS, Durability::Process).unwrap();
        assert_eq!(count(&copy).await, 100);
        write(&copy, 100).await;
    }

    #[test]
    fn what_is_not_there_is_not_made() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.sqlite");
        assert!(Snapshot::open(&file).is_err());
        assert!(!file.exists());
        std::fs::write(&file, "text ".repeat(1_000)).unwrap();
        let other = Snapshot::open(&file).and_then(|other| other.hold());
        assert!(matches!(other, Err(StorageError::Corrupt(_))), "{other:?}");
    }
}
