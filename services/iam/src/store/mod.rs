//! Where the directory is kept: what an adapter does, and the one over SQLite. Keys and passwords are stored as hashes only.
//!
//! An adapter keeps values and decides nothing. A method is one transaction; repeating a writer changes nothing, where it
//! does not say otherwise.

mod one_workspace;
mod sqlite;
mod sqlite_access;
mod sqlite_audit;

#[cfg(test)]
mod conformance;

use std::collections::BTreeSet;

use async_trait::async_trait;
use tg_collections::KnownConfig;
use tg_schemas::msg::{AuditDropped, AuditEntry};
use tg_storage::StorageError;

pub use one_workspace::ONE_WORKSPACE;
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

/// How much of what happened is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AuditBounds {
    /// Days.
    pub(crate) days: i64,
    /// Days of what was read; 0: none of it is kept.
    pub(crate) read_days: i64,
    /// Bytes of each kind in one workspace.
    pub(crate) workspace: i64,
    /// Bytes of all refusals of those who are known; of those of strangers; and of what is said of lost ones.
    pub(crate) refused: i64,
    /// Bytes of everything.
    pub(crate) all: i64,
}

/// A batch of what happened, as a process says it.
#[derive(Debug, Clone, Default)]
pub(crate) struct AuditBatch {
    /// The process.
    pub(crate) source: String,
    /// The batch's number there.
    pub(crate) sequence: i64,
    /// What happened.
    pub(crate) entries: Vec<AuditEntry>,
    /// Workspaces among that which are not there: what is about them takes the room of the system.
    pub(crate) unknown: BTreeSet<String>,
}

/// What of what happened is asked for. Times are in milliseconds since 1970.
#[derive(Debug, Clone, Default)]
pub(crate) struct AuditWanted {
    /// About one workspace.
    pub(crate) workspace: Option<String>,
    /// By one user.
    pub(crate) actor: Option<String>,
    /// Of one kind.
    pub(crate) kind: Option<String>,
    /// From then on.
    pub(crate) since: Option<i64>,
    /// Before then.
    pub(crate) until: Option<i64>,
    /// Behind the entry of this number.
    pub(crate) after: i64,
    /// So many at most.
    pub(crate) most: u32,
}

/// What happened. It is only added to; what is too old, or has no room, goes.
#[async_trait]
pub(crate) trait AuditStore: Send + Sync + 'static {
    /// Keeps a batch, where no batch of its source with its number or a later one was kept. What is the same within a
    /// minute becomes one entry. What makes room is the oldest of whoever has most of it, by user and key, where it is too
    /// much of one workspace or kind.
    async fn keep(&self, batch: &AuditBatch) -> Result<(), StorageError>;

    /// What happened, by number.
    async fn page(&self, wanted: &AuditWanted) -> Result<Vec<AuditEntry>, StorageError>;

    /// What made room, in one workspace or of all. Times in it are no older than the oldest that is kept may be.
    async fn dropped(&self, workspace: Option<&str>) -> Result<Vec<AuditDropped>, StorageError>;

    /// Takes away some of what is too old at a time; whether there is more.
    async fn forget(&self, now: i64) -> Result<bool, StorageError>;
}

/// Users, keys and workspaces, and what everybody was told of.
#[async_trait]
pub(crate) trait DirectoryStore: KnownConfig + AuditStore {
    /// At most `most` workspaces by id, after one. A fresh store has the workspace `default`, once: removed, it stays
    /// removed.
    async fn workspaces(&self, after: &str, most: u32) -> Result<Vec<Workspace>, StorageError>;

    /// At most `most` users by id, after one.
    async fn users(&self, after: &str, most: u32) -> Result<Vec<User>, StorageError>;

    /// At most `most` keys by id, after one.
    async fn keys(&self, after: &str, most: u32) -> Result<Vec<Key>, StorageError>;

    /// What signs tokens, groups, who is in them and what is granted: the changes that make all of it.
    async fn access(&self) -> Result<Vec<Change>, StorageError>;

    /// Makes changes durable, all or none, with what is written down of them. With `revokes`, also that everybody is to be
    /// told: in the same transaction, so that no crash comes between, and counted anew each time. Returns how revocations
    /// stand.
    async fn commit(
        &self,
        changes: &[Change],
        revokes: bool,
        events: &[AuditEntry],
    ) -> Result<Revocations, StorageError>;

    /// How revocations stand.
    async fn revocations(&self) -> Result<Revocations, StorageError>;

    /// Everybody was told of revocations up to one.
    async fn told(&self, up_to: i64) -> Result<(), StorageError>;
}
