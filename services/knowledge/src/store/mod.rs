//! Where cores are kept: what an adapter does, and the one over SQLite.
//!
//! Each method is one transaction, and repeating one changes nothing more. A core that was deleted is out of reach at
//! once; what it held is purged step by step, and a new core of the same name never meets it. A method fails when the
//! store failed, and has changed nothing then; what else it may refuse is said where it is.

pub(crate) mod sqlite;

#[cfg(test)]
mod conformance;

use async_trait::async_trait;
use tg_collections::CollectionKey;
use tg_schemas::msg::LibraryMetadata;
use tg_storage::StorageError;

use crate::engine::key::{CoreKey, Kind};
use crate::engine::piece::{Part, Piece};

/// Documents that may wait for their content in one workspace.
pub(crate) const MAX_PENDING: i64 = 100_000;
/// How long they may, in milliseconds.
pub(crate) const PENDING_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// A piece that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    /// Grows in the order in which pieces came.
    pub(crate) id: i64,
    pub(crate) piece: Piece,
}

/// Where pieces come from that pass by on their way into a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Passing {
    pub(crate) run: Option<String>,
    pub(crate) collection: CollectionKey,
}

/// A core that was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) core: CoreKey,
    pub(crate) flow: String,
    pub(crate) collection: String,
    /// Which generation of the collection.
    pub(crate) generation: i64,
    /// The run of the last load.
    pub(crate) run: String,
}

/// A document whose content is still to come.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pending {
    pub(crate) metadata: LibraryMetadata,
    /// The upload that takes its parts; empty before the first.
    pub(crate) upload: String,
    /// Bytes of a part.
    pub(crate) chunk: i64,
}

/// Cores and their pieces.
#[async_trait]
pub(crate) trait CoreStore: Send + Sync {
    /// Names of the cores of a workspace after another, in order; empty at the end.
    async fn list(
        &self,
        workspace: &str,
        kind: Kind,
        after: &str,
        most: u32,
    ) -> Result<Vec<String>, StorageError>;

    /// The number of a core, if there is one.
    async fn find(&self, key: &CoreKey) -> Result<Option<i64>, StorageError>;

    /// Keeps pieces; those that are there already are left alone. Durable when `Ok`; the number of new ones.
    /// What comes of a load from here is there already, and of a core that was deleted meanwhile it stays
    /// away: pieces of such a run are not kept. The collection of what passes is noted with the core; what was put is of none.
    ///
    /// # Errors
    /// [`StorageError::Refused`] when the workspace may not keep so much; otherwise when the store failed.
    async fn keep(
        &self,
        key: CoreKey,
        pieces: Vec<Piece>,
        passing: Option<Passing>,
    ) -> Result<usize, StorageError>;

    /// Pieces of a core that came after another, as many as fit a page; empty at the end.
    async fn page(&self, core: i64, part: Part, after: i64) -> Result<Vec<Stored>, StorageError>;

    /// One piece, unless its core was deleted meanwhile.
    async fn piece(&self, core: i64, id: i64) -> Result<Option<Piece>, StorageError>;

    /// Deletes cores. Whether there was one. Their pieces are out of reach at once and purged later.
    async fn delete(&self, keys: Vec<CoreKey>) -> Result<bool, StorageError>;

    /// Purges some of what deleted cores held, little, so that others need not wait long. Whether there is more to do.
    async fn purge_some(&self) -> Result<bool, StorageError>;
}

/// What was loaded where: an unload takes out what a load brought in.
#[async_trait]
pub(crate) trait LoadStore: Send + Sync {
    /// Notes a load before any of it is published.
    async fn note_load(&self, load: &Load) -> Result<(), StorageError>;

    /// Loads of a core through a flow; into one collection if one is named.
    async fn loads(
        &self,
        core: &CoreKey,
        flow: &str,
        collection: &str,
    ) -> Result<Vec<Load>, StorageError>;

    /// Forgets a load that was taken back.
    async fn forget_load(&self, load: &Load) -> Result<(), StorageError>;
}

/// Collections whose policies say what of them is for whom. No policy judges a core, so what came from such a collection, or
/// was loaded into it, is not handed out as a core.
#[async_trait]
pub(crate) trait PolicyStore: Send + Sync {
    /// Notes that a collection has policies. They end with it, and so does this: its key has its generation.
    async fn note_policies(&self, collection: &CollectionKey) -> Result<(), StorageError>;

    /// Whether a collection has policies.
    async fn has_policies(&self, collection: &CollectionKey) -> Result<bool, StorageError>;

    /// Whether a core has what is, or was, in a collection with policies.
    async fn is_judged(&self, core: &CoreKey) -> Result<bool, StorageError>;
}

/// Documents on their way into the library: what is said of them waits for their content.
#[async_trait]
pub(crate) trait PendingStore: Send + Sync {
    /// Notes what is said of a document. Takes the place of what was said before.
    ///
    /// # Errors
    /// [`StorageError::Refused`] while too many documents of the workspace wait; otherwise when the store failed.
    async fn announce(
        &self,
        workspace: &str,
        metadata: LibraryMetadata,
        now: i64,
    ) -> Result<(), StorageError>;

    /// A document that was announced.
    async fn announced(
        &self,
        workspace: &str,
        document: &str,
    ) -> Result<Option<Pending>, StorageError>;

    /// Notes where the parts of a document go.
    async fn uploading(
        &self,
        workspace: &str,
        document: &str,
        upload: String,
        chunk: i64,
    ) -> Result<(), StorageError>;

    /// Forgets a document that arrived.
    async fn arrived(&self, workspace: &str, document: &str) -> Result<(), StorageError>;
}

/// Everything that the service keeps.
pub(crate) trait KnowledgeStore:
    CoreStore + LoadStore + PolicyStore + PendingStore + 'static
{
}

impl<S: CoreStore + LoadStore + PolicyStore + PendingStore + 'static> KnowledgeStore for S {}

/// What the service keeps, wherever that is.
pub(crate) type Cores = dyn KnowledgeStore;
