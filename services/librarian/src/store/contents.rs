//! Large content, named by its hash, and content that arrives in parts until it is whole. As made for an object store as
//! for a directory: nothing is changed once it has its name, and who refers to it is known to the rows alone.

use async_trait::async_trait;
use tg_storage::StorageError;
use tg_storage::blob::{BlobId, Part, StageId, Staged};

/// Contents of all workspaces.
#[async_trait]
pub(crate) trait ContentStore: Send + Sync + 'static {
    /// Keeps content under its hash: whole or not at all. What is there and is not what its hash says is replaced.
    async fn put(&self, content: Vec<u8>) -> Result<BlobId, StorageError>;

    /// Content; `None` if there is none. What is not what its hash says is an error ([`StorageError::Corrupt`]).
    async fn get(&self, id: BlobId) -> Result<Option<Vec<u8>>, StorageError>;

    /// Up to `length` bytes from `offset`, not held against the hash; empty past the end, `None` if there is none.
    async fn get_range(
        &self,
        id: BlobId,
        offset: u64,
        length: usize,
    ) -> Result<Option<Vec<u8>>, StorageError>;

    /// Bytes of content; `None` if there is none.
    async fn size(&self, id: BlobId) -> Result<Option<u64>, StorageError>;

    /// Removes content that nobody refers to; none is fine.
    async fn remove(&self, id: BlobId) -> Result<(), StorageError>;

    /// Contents whose hash begins with a byte: all of them in 256 steps.
    async fn list(&self, first: u8) -> Result<Vec<BlobId>, StorageError>;

    /// Takes bytes of what is being staged, at their offset, in any order. After an error they are to come again.
    async fn stage_write(
        &self,
        stage: &StageId,
        offset: u64,
        bytes: Vec<u8>,
    ) -> Result<(), StorageError>;

    /// Whether what is staged is these parts, one after the other, and the hash of the whole. What is staged behind the
    /// last is let go of.
    async fn staged_hash(&self, stage: &StageId, parts: Vec<Part>) -> Result<Staged, StorageError>;

    /// Gives what is staged, and known to be whole, its name in the place of what has it. Doing it again changes nothing.
    async fn adopt(&self, stage: &StageId, id: BlobId) -> Result<(), StorageError>;

    /// Forgets what is staged; none is fine.
    async fn stage_remove(&self, stage: &StageId) -> Result<(), StorageError>;

    /// All that is being staged.
    async fn stages(&self) -> Result<Vec<StageId>, StorageError>;
}
