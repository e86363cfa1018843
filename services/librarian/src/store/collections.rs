//! What the library remembers of collections beside their config rows: the last generation of each name,
//! and which stores still have to drop which.

use async_trait::async_trait;
use tg_storage::StorageError;

/// Where the last generation of a name is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    /// It is there.
    Live = 0,
    /// It is deleted; its config row may still be there.
    Noted = 1,
    /// It is deleted, and its row is gone.
    Gone = 2,
}

/// What is remembered of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    /// Its last generation.
    pub(crate) generation: i64,
    pub(crate) life: Life,
    /// Generation that has the names of the vocabulary; -1 for none.
    pub(crate) labelled: i64,
}

impl Known {
    /// Whether a row says a generation that was deleted: another hand put it there again.
    pub(crate) fn is_dead(self, row: i64) -> bool {
        self.life != Life::Live && row <= self.generation
    }
}

/// A store that has not confirmed a deletion yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tombstone {
    pub(crate) workspace: String,
    pub(crate) collection: String,
    pub(crate) store: String,
    pub(crate) generation: i64,
}

/// Collections of all workspaces.
#[async_trait]
pub(crate) trait CollectionStore: Send + Sync + 'static {
    /// What is remembered of a name.
    async fn collection(&self, workspace: &str, id: &str) -> Result<Option<Known>, StorageError>;

    /// Remembers a collection whose row says a generation; `None` if that one is dead.
    async fn remember_collection(
        &self,
        workspace: &str,
        id: &str,
        row: i64,
    ) -> Result<Option<i64>, StorageError>;

    /// The generation of a collection that is made or changed: the one that its row says, if that lives, else the
    /// next. What another hand took away is to be dropped by every store.
    async fn begin_collection(
        &self,
        workspace: &str,
        id: &str,
        row: Option<i64>,
    ) -> Result<i64, StorageError>;

    /// Notes for good that a collection is deleted, up to the generation that its row says: its runs end, what was
    /// to be retracted from it is forgotten, and every store is to drop it. Returns the generation.
    async fn end_collection(
        &self,
        workspace: &str,
        id: &str,
        row: i64,
        why: &str,
    ) -> Result<i64, StorageError>;

    /// The row of a deleted generation is gone.
    async fn collection_gone(
        &self,
        workspace: &str,
        id: &str,
        generation: i64,
    ) -> Result<(), StorageError>;

    /// Deletions of a collection that stores have not confirmed, at most one a store.
    async fn tombstones_of(
        &self,
        workspace: &str,
        id: &str,
    ) -> Result<Vec<Tombstone>, StorageError>;

    /// At most `most` deletions that a store has not confirmed.
    async fn pending_tombstones(
        &self,
        store: &str,
        most: u32,
    ) -> Result<Vec<Tombstone>, StorageError>;

    /// A store confirmed a deletion, up to its generation.
    async fn confirm(&self, stone: &Tombstone) -> Result<(), StorageError>;
}
