//! Where rows are kept: what an adapter does, and the one over SQLite.
//!
//! Retraction and the end of collections and workspaces are [`tg_collections::CollectionStore`]'s; what is here is what
//! only rows need.

pub mod sqlite;

#[cfg(test)]
mod conformance;

use std::collections::BTreeMap;

use async_trait::async_trait;
use tg_collections::CollectionKey;
use tg_schemas::table::Table;

use crate::engine::select::Select;
use crate::engine::value::{Row, Value};
use crate::error::RowsError;

/// Where a page of an export begins: behind this row of this table. The first page begins behind nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowCursor {
    /// Key of the table.
    pub table: String,
    /// Number of the row.
    pub row: i64,
}

/// Rows of one table, as they were written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// Key of the table; empty where there is nothing.
    pub table: String,
    /// Texts by field.
    pub rows: Vec<BTreeMap<String, String>>,
    /// Where the next page begins; `None` behind the last row.
    pub next: Option<RowCursor>,
}

/// The rows of all collections. Each method is one transaction; repeating one changes nothing more.
#[async_trait]
pub trait RowStore: Send + Sync + 'static {
    /// Stores rows of a table, each once whatever else comes from the same chunk; `chunk` is empty for rows that come
    /// from nowhere, and else may have, behind a line feed, who found them and how. A table whose configuration changed is brought into its new shape first, and keeps its rows.
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

    /// A page of all rows of a collection, table by table in the order of their names, in each in the order they came; also
    /// of tables that the configuration does not have any more. At most `most` rows, fewer where they are long.
    ///
    /// # Errors
    /// [`RowsError::Storage`] when the store failed.
    async fn page(
        &self,
        key: &CollectionKey,
        after: RowCursor,
        most: usize,
    ) -> Result<Page, RowsError>;

    /// Takes some of what is out of use off the disk: little, so that others need not wait long. `false` when nothing
    /// is left.
    ///
    /// # Errors
    /// [`RowsError::Storage`] when the store failed.
    async fn purge_some(&self) -> Result<bool, RowsError>;
}
