//! Contents as files of a directory: the adapter over [`BlobStore`]. Knows no rows.

use async_trait::async_trait;
use tg_storage::StorageError;
use tg_storage::blob::{BlobId, BlobStore, Part, StageId, Staged};

use super::contents::ContentStore;

#[async_trait]
impl ContentStore for BlobStore {
    async fn put(&self, content: Vec<u8>) -> Result<BlobId, StorageError> {
        Self::put(self, content).await
    }

    async fn get(&self, id: BlobId) -> Result<Option<Vec<u8>>, StorageError> {
        Self::get(self, id).await
    }

    async fn get_range(
        &self,
        id: BlobId,
        offset: u64,
        length: usize,
    ) -> Result<Option<Vec<u8>>, StorageError> {
        Self::get_range(self, id, offset, length).await
    }

    async fn size(&self, id: BlobId) -> Result<Option<u64>, StorageError> {
        Self::size(self, id).await
    }

    async fn remove(&self, id: BlobId) -> Result<(), StorageError> {
        Self::remove(self, id).await
    }

    async fn list(&self, first: u8) -> Result<Vec<BlobId>, StorageError> {
        Self::list(self, first).await
    }

    async fn stage_write(
        &self,
        stage: &StageId,
        offset: u64,
        bytes: Vec<u8>,
    ) -> Result<(), StorageError> {
        Self::stage_write(self, stage, offset, bytes).await
    }

    async fn staged_hash(&self, stage: &StageId, parts: Vec<Part>) -> Result<Staged, StorageError> {
        Self::staged_hash(self, stage, parts).await
    }

    async fn adopt(&self, stage: &StageId, id: BlobId) -> Result<(), StorageError> {
        Self::adopt(self, stage, id).await
    }

    async fn stage_remove(&self, stage: &StageId) -> Result<(), StorageError> {
        Self::stage_remove(self, stage).await
    }

    async fn stages(&self) -> Result<Vec<StageId>, StorageError> {
        Self::stages(self).await
    }
}
