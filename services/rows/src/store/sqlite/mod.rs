//! Rows in SQLite: one SQLite table per table of a collection, with a typed column per field and an index per
//! indexed field. All SQL of this service is here and below.

mod drop;
mod export;
mod lifecycle;
mod one_workspace;
mod quota;
mod read;
mod shape;
mod sql;
mod write;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
pub use one_workspace::ONE_WORKSPACE;
use quota::Gate;
use tg_collections::{CollectionKey, Quota};
use tg_schemas::table::Table;
use tg_storage::{Database, Durability, StorageError, query_rows};

use super::{Page, RowCursor, RowStore};
use crate::engine::select::Select;
use crate::engine::value::{Row, Value};
use crate::error::RowsError;

/// Schema of the catalogue; the tables of rows are made as they are needed. `bytes` is of the rows' texts; it is not
/// known yet for tables of the release before.
const MIGRATIONS: &[&str] = &[
    "
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
",
    "
    ALTER TABLE sets ADD COLUMN bytes INTEGER;
",
];

/// The rows of this process. Clones share it.
#[derive(Debug, Clone)]
pub struct SqliteRows {
    database: Database,
    gate: Arc<Gate>,
}

impl SqliteRows {
    /// Opens or creates the file and takes its lock. Blocks.
    ///
    /// # Errors
    /// [`StorageError::InUse`] while another process has it; otherwise what is wrong with the file.
    pub fn open(file: &Path, durability: Durability) -> Result<Self, StorageError> {
        Ok(Self {
            database: Database::open(file, MIGRATIONS, durability)?,
            gate: Arc::default(),
        })
    }

    /// The same store, in which a workspace may keep so much.
    pub fn holding(self, quota: Quota) -> Self {
        Self {
            gate: Arc::new(Gate::of(quota)),
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
                query_rows(conn, sql, [], |row| row.get(0))
            })
            .await
    }

    /// A store without a file.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn in_memory() -> Result<Self, StorageError> {
        Ok(Self {
            database: Database::in_memory(MIGRATIONS)?,
            gate: Arc::default(),
        })
    }
}

#[async_trait]
impl RowStore for SqliteRows {
    async fn write(
        &self,
        key: &CollectionKey,
        table: Table,
        rows: Vec<Row>,
        chunk: String,
    ) -> Result<usize, RowsError> {
        Ok(self.write_rows(key, table, rows, chunk).await?)
    }

    async fn select(
        &self,
        key: &CollectionKey,
        table: &Table,
        select: Select,
    ) -> Result<Vec<Vec<Value>>, RowsError> {
        Ok(self.select_rows(key, table, select).await?)
    }

    async fn page(
        &self,
        key: &CollectionKey,
        after: RowCursor,
        most: usize,
    ) -> Result<Page, RowsError> {
        Ok(self.page_of(key, after, most).await?)
    }

    async fn purge_some(&self) -> Result<bool, RowsError> {
        Ok(self.purge_step().await?)
    }
}
