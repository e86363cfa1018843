//! Upload sessions and the parts that arrived.

use async_trait::async_trait;
use tg_storage::StorageError;
use tg_storage::blob::{BlobId, Part};

use crate::engine::quota::Quota;
use crate::engine::upload::Session;
use crate::store::documents::New;

/// A part that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) position: u64,
    pub(crate) part: Part,
}

/// A session in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) number: i64,
    pub(crate) session: Session,
    /// Parts that arrived.
    pub(crate) received: u64,
}

/// Upload sessions of all workspaces.
#[async_trait]
pub(crate) trait UploadStore: Send + Sync + 'static {
    /// Begins a session, or says how the one of its id was begun. One that announces a hash goes on with the latest open
    /// session of the same document, hash and sizes that replaces as it does and is not over at the moment it begins; that
    /// one takes over its metadata. Refuses (conflict) one whose document is there and that does not replace it, and what the
    /// workspace's quota has no room for.
    async fn begin_upload(&self, session: Session, quota: Quota) -> Result<Session, StorageError>;

    /// A session, complete ones too.
    async fn session(&self, id: &str) -> Result<Option<Session>, StorageError>;

    /// At most `most` sessions in progress after a number, oldest first.
    async fn sessions(
        &self,
        workspace: &str,
        after: i64,
        most: u32,
    ) -> Result<Vec<Listed>, StorageError>;

    /// At most `most` ids, sorted, after one, of sessions whose content was about to be taken over.
    async fn adopting(&self, after: &str, most: u32) -> Result<Vec<String>, StorageError>;

    /// At most `most` ids of sessions begun at a moment or before, complete ones too.
    async fn begun_before(&self, moment: i64, most: u32) -> Result<Vec<String>, StorageError>;

    /// At most `most` ids of a workspace's sessions, complete ones too.
    async fn uploads_of(&self, workspace: &str, most: u32) -> Result<Vec<String>, StorageError>;

    /// Parts that arrived, in order: no more than an upload may have.
    async fn parts(&self, id: &str) -> Result<Vec<Arrived>, StorageError>;

    /// The hash of a part that arrived.
    async fn part(&self, id: &str, position: u64) -> Result<Option<BlobId>, StorageError>;

    /// A part arrived, or again with other content.
    async fn set_part(&self, id: &str, arrived: Arrived) -> Result<(), StorageError>;

    /// Forgets that a part arrived.
    async fn drop_part(&self, id: &str, position: u64) -> Result<(), StorageError>;

    /// The content is not whole after all: forgets parts, and that all of it was found to be there.
    async fn reopen_upload(&self, id: &str, lost: Vec<u64>) -> Result<(), StorageError>;

    /// All parts arrived, and this is the hash of the whole: its file is about to become the content. `false`: the
    /// document is there and is not replaced; the session is over.
    async fn begin_adopting(&self, session: &Session, hash: BlobId) -> Result<bool, StorageError>;

    /// The session is complete: the document has the content. `None`: the document is there and is not replaced; the
    /// session is over.
    async fn complete_upload(
        &self,
        session: Session,
        new: New,
    ) -> Result<Option<Session>, StorageError>;

    /// Forgets a session with its parts.
    async fn remove_upload(&self, id: &str) -> Result<(), StorageError>;
}
