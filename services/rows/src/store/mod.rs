//! Rows on disk: one SQLite table per table of a collection, with a typed column per field and an index per
//! indexed field. All SQL of this service is here and below.

mod drop;
mod quota;
mod read;
mod shape;
mod sql;
mod write;

use std::path::Path;
use std::sync::Arc;

use quota::Quota;
use tg_storage::{Database, Durability, StorageError};

/// Schema of the catalogue; the tables of rows are made as they are needed.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE sets (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        workspace TEXT NOT NULL,
        collection TEXT NOT NULL,
        incarnation INTEGER NOT NULL,
        name TEXT NOT NULL,
        shape TEXT NOT NULL,
        dropped INTEGER NOT NULL DEFAULT 0
    );
    CREATE UNIQUE INDEX sets_live ON sets (workspace, collection, incarnation, name) WHERE dropped = 0;
    CREATE TABLE sources (
        set_id INTEGER NOT NULL,
        key BLOB NOT NULL,
        chunk TEXT NOT NULL,
        PRIMARY KEY (set_id, key, chunk)
    ) WITHOUT ROWID;
    CREATE INDEX sources_chunk ON sources (chunk, set_id);
"];

/// The rows of this process. Clones share it.
#[derive(Debug, Clone)]
pub struct Store {
    database: Database,
    quota: Arc<Quota>,
}

impl Store {
    /// Opens or creates the file and takes its lock. Blocks.
    pub fn open(file: &Path, durability: Durability) -> Result<Self, StorageError> {
        Ok(Self {
            database: Database::open(file, MIGRATIONS, durability)?,
            quota: Arc::default(),
        })
    }

    /// The same store, in which a workspace may keep so many rows.
    pub fn holding(self, most: u64) -> Self {
        Self {
            quota: Arc::new(Quota::of(most)),
            ..self
        }
    }

    /// The file below.
    pub(crate) fn file(&self) -> &Database {
        &self.database
    }

    /// Workspaces that have rows.
    pub(crate) async fn known_workspaces(&self) -> Result<Vec<String>, StorageError> {
        self.database
            .read(|conn| {
                let sql = "SELECT DISTINCT workspace FROM sets WHERE dropped = 0";
                let mut query = conn.prepare_cached(sql)?;
                let rows = query.query_map([], |row| row.get(0))?;
                Ok(rows.collect::<Result<_, _>>()?)
            })
            .await
    }

    /// A store without a file.
    pub fn in_memory() -> Result<Self, StorageError> {
        Ok(Self {
            database: Database::in_memory(MIGRATIONS)?,
            quota: Arc::default(),
        })
    }
}

#[cfg(test)]
mod tests;
