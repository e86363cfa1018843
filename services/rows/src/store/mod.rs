//! Where rows are kept: what an adapter does, and the one over SQLite.
//!
//! Retraction and the end of collections and workspaces are [`tg_collections::CollectionStore`]'s; what is here is what
//! only rows need.

pub mod sqlite;

#[cfg(test)]
mod conformance;

use async_trait::async_trait;
use tg_collections::CollectionKey;
use tg_schemas::table::Table;

use crate::engine::select::Select;
use crate::engine::value::{Row, Value};
use crate::error::RowsError;

/// The rows of all collections. Each method is one transaction; repeating one changes nothing more.
#[async_trait]
pub trait RowStore: Send + Sync + 'static {
    /// Stores rows of a table, each once whatever else comes from the same chunk; `chunk` is empty for rows that come
    /// from nowhere. A table whose configuration changed is brought into its new shape first, and keeps its rows.
    /// Durable when `Ok`; how many rows are stored, new or not.
    ///
    /// # Errors
    /// [`RowsError::Storage`] when the store failed, and when the workspace may not keep so many rows; nothing of the
    /// write was kept then.
    async fn write(
        &self,
        key: &CollectionKey,
        table: Table,
        rows: Vec<Row>,
        chunk: String,
    ) -> Result<usize, RowsError>;

    /// The rows that a question asks for, a value per field of the table. A table without rows has none.
    ///
    /// # Errors
    /// [`RowsError::Storage`] when the store failed. A future that is dropped ends its read.
    async fn select(
        &self,
        key: &CollectionKey,
        table: &Table,
        select: Select,
    ) -> Result<Vec<Vec<Value>>, RowsError>;

    /// Takes some of what is out of use off the disk: little, so that others need not wait long. `false` when nothing
    /// is left.
    ///
    /// # Errors
    /// [`RowsError::Storage`] when the store failed.
    async fn purge_some(&self) -> Result<bool, RowsError>;
}
