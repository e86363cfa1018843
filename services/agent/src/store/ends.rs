//! The ends of traces, and the signed heads over them, as the ledger keeps them.

use async_trait::async_trait;
use tg_provenance::Ended;
use tg_storage::StorageError;

use super::whose::IsOver;

/// How the trace of a run ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunEnd {
    /// Its workspace, in the text form of its key.
    pub workspace: String,
    /// The day in UTC, `YYYY-MM-DD`.
    pub day: String,
    /// Its question, its collection, and the hash of its end; that is empty for a trace without hashes.
    pub ended: Ended,
    /// Everything that follows from its earlier steps was done, too.
    pub earlier_done: bool,
}

/// A head that was signed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignedHead {
    /// Counts the heads of a workspace from 1.
    pub number: i64,
    /// The day that it is of.
    pub day: String,
    /// What was signed.
    pub text: String,
    /// The signature in base64.
    pub signature: String,
}

/// What verifies heads that a key before signed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeadKey {
    /// Its public half, as PEM.
    pub pem: String,
    /// What it signed from then on does not count, RFC 3339 in UTC; empty: all of it does.
    pub revoked_from: String,
}

/// What was signed before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastHeads {
    /// The last head of the workspace.
    pub last: Option<SignedHead>,
    /// The last head of the day.
    pub of_day: Option<SignedHead>,
}

/// The ledger as it keeps ends of traces, heads over them and the keys that sign these; each method is one transaction.
///
/// # Errors
/// Every method: when the store failed; nothing is changed then.
#[async_trait]
pub trait HeadStore: Send + Sync + 'static {
    /// How runs of a workspace ended on a day, in that order: so many of those behind a number at most, which counts from 1
    /// each day. They are kept for five weeks.
    async fn ended(
        &self,
        workspace: &str,
        day: &str,
        after: i64,
        most: usize,
    ) -> Result<Vec<Ended>, StorageError>;

    /// The last head that was signed in a workspace, and the last one of a day.
    async fn heads(&self, workspace: &str, day: &str) -> Result<LastHeads, StorageError>;

    /// Keeps a head. `false`: its number is taken, or the workspace has ended. Of those before it some thousand are kept.
    async fn keep_head(
        &self,
        workspace: &str,
        is_over: &IsOver,
        head: &SignedHead,
    ) -> Result<bool, StorageError>;

    /// The key that signs heads: the one that is kept, else this one, which is kept from now on.
    async fn head_key(&self, new: Vec<u8>) -> Result<Vec<u8>, StorageError>;

    /// Another key signs heads from now on; of the old one what verifies (PEM) is kept. `false`: the old one signs no more.
    async fn rotate_head_key(
        &self,
        old: Vec<u8>,
        verifies: String,
        new: Vec<u8>,
    ) -> Result<bool, StorageError>;

    /// What verifies heads that keys before signed, the newest first.
    async fn head_keys_before(&self) -> Result<Vec<HeadKey>, StorageError>;

    /// What one of those signed from an instant on (RFC 3339 in UTC) does not count; of two instants the earlier stands.
    /// `false`: there is none with this public half (PEM).
    async fn revoke_head_key(&self, pem: String, from: String) -> Result<bool, StorageError>;
}
