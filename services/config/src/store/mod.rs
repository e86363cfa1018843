//! Where the rows are kept: what an adapter does, and the one over SQLite.
//!
//! An adapter keeps values and decides nothing. Each method is one transaction; repeating a write changes nothing.

mod sqlite;

#[cfg(test)]
mod conformance;

use async_trait::async_trait;
use tg_storage::StorageError;

pub(crate) use sqlite::SqliteStore;
pub use sqlite::{ONE_WORKSPACE, workspace_key};

use crate::engine::{Change, Row, RowKey};

/// Most deleted workspaces whose rows are kept; those that were to be purged first go first.
pub(crate) const MAX_TRASH: u32 = 1000;

/// The rows of all workspaces, their version, and what deleted workspaces left.
#[async_trait]
pub(crate) trait ConfigStore: Send + Sync + 'static {
    /// The version that was committed last. A store that starts anew counts from the clock, so that it never falls
    /// behind versions that running processors have seen.
    async fn version(&self) -> Result<i64, StorageError>;

    /// At most `most` rows by workspace, type and key, from just after a row on.
    async fn page(&self, after: Option<RowKey>, most: u32) -> Result<Vec<Row>, StorageError>;

    /// What is kept of a deleted workspace, as much as one workspace may hold; `None`: nothing.
    async fn trash(&self, workspace: &str) -> Result<Option<Vec<Row>>, StorageError>;

    /// Makes a change durable, whole or not at all: rows, trash and version. What the trash keeps beyond
    /// [`MAX_TRASH`] or past its time at `now`, milliseconds since the Unix epoch, goes.
    async fn commit(&self, change: &Change, now: i64) -> Result<(), StorageError>;
}
