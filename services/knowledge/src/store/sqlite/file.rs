//! The file of cores and its tables.

use std::path::Path;

use tg_storage::{Database, Durability, StorageError};

const MIGRATIONS: &[&str] = &["
CREATE TABLE core (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace TEXT NOT NULL,
    name TEXT NOT NULL,
    kind INTEGER NOT NULL,
    UNIQUE (workspace, name, kind)
) STRICT;
CREATE TABLE dropped (core INTEGER PRIMARY KEY) STRICT;
CREATE TABLE piece (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    core INTEGER NOT NULL,
    part INTEGER NOT NULL,
    digest BLOB NOT NULL,
    model TEXT NOT NULL,
    items INTEGER NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (core, digest)
) STRICT;
CREATE INDEX piece_order ON piece (core, part, id);
CREATE TABLE load (
    workspace TEXT NOT NULL,
    core TEXT NOT NULL,
    kind INTEGER NOT NULL,
    flow TEXT NOT NULL,
    collection TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    run TEXT NOT NULL,
    PRIMARY KEY (workspace, core, kind, flow, collection)
) STRICT, WITHOUT ROWID;
CREATE INDEX load_run ON load (run);
CREATE TABLE pending (
    workspace TEXT NOT NULL,
    document TEXT NOT NULL,
    metadata TEXT NOT NULL,
    upload TEXT NOT NULL,
    chunk INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (workspace, document)
) STRICT, WITHOUT ROWID;
CREATE INDEX pending_at ON pending (at);
"];

/// The open file.
pub(crate) struct SqliteCores {
    pub(super) db: Database,
}

impl SqliteCores {
    /// Opens or creates the file and takes its lock. Blocks: call it off the runtime.
    ///
    /// # Errors
    /// [`StorageError::InUse`] while another process has it; otherwise what is wrong with the file.
    pub(crate) fn open(path: &Path, durability: Durability) -> Result<Self, StorageError> {
        let db = Database::open(path, MIGRATIONS, durability)?;
        Ok(Self { db })
    }

    /// A file that exists only in memory.
    #[cfg(test)]
    pub(crate) fn in_memory() -> Result<Self, StorageError> {
        let db = Database::in_memory(MIGRATIONS)?;
        Ok(Self { db })
    }

    /// The file below.
    pub(crate) fn file(&self) -> &Database {
        &self.db
    }

    /// Workspaces that have anything here.
    pub(crate) async fn known_workspaces(&self) -> Result<Vec<String>, StorageError> {
        self.db
            .read(|conn| {
                let sql = "SELECT workspace FROM core UNION SELECT workspace FROM load
                           UNION SELECT workspace FROM pending";
                let mut query = conn.prepare_cached(sql)?;
                let rows = query.query_map([], |row| row.get(0))?;
                Ok(rows.collect::<Result<_, _>>()?)
            })
            .await
    }
}
