//! Where the directory is kept: what an adapter does, and the one over SQLite. Keys and passwords are stored as hashes only.
//!
//! An adapter keeps values and decides nothing. A method is one transaction; repeating a writer changes nothing, where it
//! does not say otherwise.

mod sqlite;
mod sqlite_access;

#[cfg(test)]
mod conformance;

use async_trait::async_trait;
use tg_collections::KnownConfig;
use tg_storage::StorageError;

pub(crate) use sqlite::SqliteDirectory;

use crate::engine::{Change, Key, User, Workspace};

/// Revocations, counted: what was committed, and what everybody was told of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Revocations {
    /// The last one committed.
    pub(crate) made: i64,
    /// The last one of which everybody was told.
    pub(crate) told: i64,
}

impl Revocations {
    /// Whether everybody is still to be told of something.
    pub(crate) fn are_owed(self) -> bool {
        self.told < self.made
    }
}

/// Users, keys and workspaces, and what everybody was told of.
#[async_trait]
pub(crate) trait DirectoryStore: KnownConfig + 'static {
    /// At most `most` workspaces by id, after one. A fresh store has the workspace `default`, once: removed, it stays
    /// removed.
    async fn workspaces(&self, after: &str, most: u32) -> Result<Vec<Workspace>, StorageError>;

    /// At most `most` users by id, after one.
    async fn users(&self, after: &str, most: u32) -> Result<Vec<User>, StorageError>;

    /// At most `most` keys by id, after one.
    async fn keys(&self, after: &str, most: u32) -> Result<Vec<Key>, StorageError>;

    /// What signs tokens, groups, who is in them and what is granted: the changes that make all of it.
    async fn access(&self) -> Result<Vec<Change>, StorageError>;

    /// Makes changes durable, all or none. With `revokes`, also that everybody is to be told: in the same transaction,
    /// so that no crash comes between, and counted anew each time. Returns how revocations stand.
    async fn commit(&self, changes: &[Change], revokes: bool) -> Result<Revocations, StorageError>;

    /// How revocations stand.
    async fn revocations(&self) -> Result<Revocations, StorageError>;

    /// Everybody was told of revocations up to one.
    async fn told(&self, up_to: i64) -> Result<(), StorageError>;
}
