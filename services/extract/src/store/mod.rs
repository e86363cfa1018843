//! What the extractors keep: the ledger of replies and the statements that fit no ontology, what an adapter of it does,
//! and the one over SQLite.
//!
//! A reply that was paid for is kept by everything that determined it. A repeat reads it here, so that it says the same
//! and costs nothing.

mod lifecycle;
mod quarantine;
mod sqlite;

#[cfg(test)]
mod conformance;

use async_trait::async_trait;
use tg_storage::StorageError;

pub use quarantine::{Origin, Quarantine, Quarantined, Which};
pub use sqlite::ONE_WORKSPACE;
/// The adapter that is used.
pub use sqlite::SqliteLedger as Ledger;

/// A reply as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedReply {
    /// Items of the reply, a JSON array.
    pub reply: String,
    /// Lines of the reply that were unusable from the start.
    pub dropped: i64,
    /// The model that replied; empty if it did not say.
    pub model: String,
    /// When it was asked: UTC, ISO 8601 with `Z`.
    pub asked_at: String,
}

/// Replies, and what was written where once. Each method is one transaction, and repeating one changes nothing more.
#[async_trait]
pub trait ReplyLedger: Send + Sync + 'static {
    /// The reply kept under a key.
    ///
    /// # Errors
    /// When the store failed.
    async fn find(&self, key: String) -> Result<Option<CachedReply>, StorageError>;

    /// Keeps a reply for a workspace; durable when `Ok`. The first one under a key stays. Where the workspace has more than
    /// it may, its oldest ones go.
    ///
    /// # Errors
    /// When the store failed; nothing was kept then.
    async fn keep(
        &self,
        key: String,
        workspace: String,
        kept: CachedReply,
    ) -> Result<(), StorageError>;

    /// Whether a place was told this version already.
    ///
    /// # Errors
    /// When the store failed.
    async fn was_told(
        &self,
        workspace: String,
        place: String,
        version: String,
    ) -> Result<bool, StorageError>;

    /// Notes that a place was told a version.
    ///
    /// # Errors
    /// When the store failed; nothing was noted then.
    async fn tell(
        &self,
        workspace: String,
        place: String,
        version: String,
    ) -> Result<(), StorageError>;
}
