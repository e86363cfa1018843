//! A connection that moves pages of the write-ahead log into the file while another one commits.

use std::path::PathBuf;

use rusqlite::Connection;

use crate::{Durability, StorageError, connection, wal};

/// Moves pages of the log.
#[derive(Debug)]
pub(crate) struct Mover {
    /// `None`: the database has no file.
    file: Option<(PathBuf, Durability)>,
    /// Opened when there are pages to be moved for the first time: most stores write little.
    conn: Option<Connection>,
}

impl Mover {
    /// For the database in a file.
    pub(crate) fn of(file: Option<(PathBuf, Durability)>) -> Self {
        Self { file, conn: None }
    }

    /// Moves the pages that are in the log now.
    pub(crate) fn move_pages(&mut self) -> Result<(), StorageError> {
        let Some((path, durability)) = &self.file else {
            return Ok(());
        };
        let kept = &mut self.conn;
        let conn = match kept {
            Some(conn) => conn,
            None => kept.insert(connection::mover(path, *durability)?),
        };
        wal::move_pages(conn)
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    #[test]
    fn pages_are_moved_while_somebody_else_writes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.db");
        let tables = &["CREATE TABLE item (body BLOB)"];
        let (mut conn, wal) = connection::writer(&path, tables, Durability::Process).unwrap();
        conn.execute("INSERT INTO item VALUES (zeroblob(17000000))", [])
            .unwrap();
        assert!(wal.wants_moving() && !wal.is_appended_to());
        let bytes = || std::fs::metadata(&path).unwrap().len();
        let mut mover = Mover::of(Some((path.clone(), Durability::Process)));
        let under_way = conn.transaction().unwrap();
        under_way.execute("DELETE FROM item", []).unwrap();
        mover.move_pages().unwrap();
        drop(under_way);
        assert!(bytes() > 16 << 20, "{}", bytes());
        assert!(wal.is_full());
        let conn = Mutex::new(conn);
        wal.checkpoint_beside(&conn, || mover.move_pages());
        assert!(!wal.is_full() && !wal.is_appended_to(), "it begins anew");
        conn.lock().execute("DELETE FROM item", []).unwrap();
        assert!(wal.is_appended_to());
    }
}
