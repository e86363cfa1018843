//! Documents, their content by hash, and what a workspace keeps.

use async_trait::async_trait;
use tg_schemas::msg::{ChunkReaders, DocumentMetadata};
use tg_storage::StorageError;
use tg_storage::blob::BlobId;

use crate::engine::asker::Asker;
use crate::engine::quota::Usage;

/// Content that is ready to be used: a small body, or the name of a file that is there.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) hash: BlobId,
    pub(crate) size: u64,
    /// `None`: in a file.
    pub(crate) body: Option<Vec<u8>>,
}

/// Where content is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContentLocation {
    pub(crate) hash: BlobId,
    /// `None`: the file knows.
    pub(crate) size: Option<u64>,
    /// `None`: in a file.
    pub(crate) body: Option<Vec<u8>>,
}

/// A document and where its content is; `None` for content that no row speaks for any more.
pub(crate) type Located = (DocumentMetadata, Option<ContentLocation>);

/// A document with its content, to be added.
pub(crate) type New = (DocumentMetadata, Prepared);

/// What is to be done about parts that were added.
#[derive(Debug, Clone, Default)]
pub(crate) struct Added {
    /// Nothing: every store has them from a complete earlier run, or this run was taken back.
    pub(crate) unchanged: Vec<DocumentMetadata>,
    /// Of the others: who is to read them, where that is told apart.
    pub(crate) readers: Vec<ChunkReaders>,
}

/// Which documents of a workspace are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Which {
    /// All, with parts and answers.
    Everything,
    /// Those that are nobody's part and no answers.
    OnTop,
    /// Direct parts of a document.
    PartsOf(String),
}

/// A page of documents.
#[derive(Debug, Clone)]
pub(crate) struct Listing {
    pub(crate) which: Which,
    /// Only those that are processed into a collection; empty for all.
    pub(crate) collection: String,
    /// Only the one with this id; empty for all.
    pub(crate) id: String,
    /// Only those after this number.
    pub(crate) after: i64,
    pub(crate) most: u32,
}

/// Documents of all workspaces.
#[async_trait]
pub(crate) trait DocumentStore: Send + Sync + 'static {
    /// What a workspace keeps now, with what its uploads announced; and what it would keep besides if documents had
    /// these ids and bytes of content. What takes the place of something counts only for what it has more.
    async fn usage(
        &self,
        workspace: &str,
        adds: Vec<(String, u64)>,
    ) -> Result<(Usage, Usage), StorageError>;

    /// A document's metadata.
    async fn document(
        &self,
        workspace: &str,
        id: &str,
    ) -> Result<Option<DocumentMetadata>, StorageError>;

    /// Documents with their places in the order of the ids, `None` for those that are not there; none at all if
    /// their content has more than `most` bytes, as far as is known here.
    async fn located(
        &self,
        workspace: &str,
        ids: Vec<String>,
        most: u64,
    ) -> Result<Option<Vec<Option<Located>>>, StorageError>;

    /// Documents with their numbers in the order they came. Fewer than asked for where they are large; none: there
    /// are no more.
    async fn walk(
        &self,
        workspace: &str,
        walk: Listing,
    ) -> Result<Vec<(i64, DocumentMetadata)>, StorageError>;

    /// Adds a document. Refuses (conflict) one that is there, unless the same question added it or it is an answer
    /// with the same content.
    async fn add_new(&self, asker: &Asker, new: New) -> Result<(), StorageError>;

    /// Adds documents that are not there. Returns those of the others that have other content.
    async fn add_all(
        &self,
        asker: &Asker,
        new: Vec<New>,
    ) -> Result<Vec<DocumentMetadata>, StorageError>;

    /// Adds a document, or gives the one that is there its content; refuses another kind.
    async fn ensure(&self, asker: &Asker, new: New) -> Result<(), StorageError>;

    /// Adds a part of a document; refuses (conflict) another of its id, and (not found) one without its parent.
    async fn add_child(&self, asker: &Asker, new: New) -> Result<(), StorageError>;

    /// Adds parts, or changes those that are there to what they are now, and notes that the run, if any, has them.
    /// Says what is to be done about them. With `told_apart` processors that read a chunk are told apart: what one of
    /// them makes anew takes the place of what it made before, and only that.
    async fn add_children(
        &self,
        asker: &Asker,
        new: Vec<New>,
        told_apart: bool,
    ) -> Result<Added, StorageError>;

    /// A document was cut to its end: forgets the parts whose retraction is confirmed. With none confirmed: returns
    /// the parts of earlier runs that are gone, where that is certain already.
    async fn finish_children(
        &self,
        asker: &Asker,
        id: &str,
        confirmed: Vec<String>,
    ) -> Result<Vec<DocumentMetadata>, StorageError>;

    /// Overwrites time, title, comments, metadata and tags, and the content if some is given. `false`: there is no
    /// such document.
    async fn update(
        &self,
        workspace: &str,
        document: DocumentMetadata,
        content: Option<Prepared>,
    ) -> Result<bool, StorageError>;

    /// Removes a document with all that was cut from it and its runs; what was processed from it is to be
    /// retracted. Refuses (not found) one that is not there, unless the same question removed it.
    async fn remove(&self, asker: &Asker, id: &str) -> Result<(), StorageError>;

    /// Removes the oldest answers of each workspace above a number, at most `most` of each. Returns how many.
    async fn trim_answers(&self, keep: u32, most: u32) -> Result<usize, StorageError>;

    /// Forgets some files that nobody uses, and names them. The caller keeps adders away until they are removed.
    async fn take_unused(&self, most: u32) -> Result<Vec<BlobId>, StorageError>;

    /// Those of the hashes that no row speaks for, neither a document's nor that of an upload that is about to be
    /// one.
    async fn unknown(&self, hashes: Vec<BlobId>) -> Result<Vec<BlobId>, StorageError>;
}
