//! The library's documents: rows in one store, large content in another. Knows no bus: handlers
//! pass workspace, question id, time and fields.

mod add;
mod change;
mod children;
mod read;
mod tidy;
mod uploads;

use std::sync::Arc;

use tg_schemas::msg::DocumentMetadata;
use tg_schemas::{Error, ErrorCode, limits};
use tg_storage::StorageError;
use tg_storage::blob::BlobId;
use tokio::sync::{Mutex, MutexGuard, RwLock};

use crate::engine::ids;
use crate::engine::quota::Quota;
use crate::error::{invalid, wire};
use crate::store::documents::Prepared;
use crate::store::{ContentStore, LibraryStore};

pub(crate) use read::{Listed, Piece};
pub(crate) use uploads::UploadStatus;

/// Content up to this many bytes is kept in its row.
const SMALL: usize = 32 << 10;
/// Longest id of a document in bytes.
const LONGEST_ID: usize = 2048;
/// Most bytes of what is said of a document, beside its content.
const SAID: usize = limits::BESIDE_CONTENT;
/// Most documents added at once.
const MOST: usize = 2000;
/// Locks that uploads share.
const LOCKS: usize = 64;

/// Documents of all workspaces.
pub(crate) struct Library {
    rows: Arc<dyn LibraryStore>,
    content: Arc<dyn ContentStore>,
    quota: Quota,
    /// Files that are being added must not be removed as unused: adders share, removers are alone.
    uses: RwLock<()>,
    /// Chunks of one upload are taken one after the other.
    uploads: [Mutex<()>; LOCKS],
}

impl Library {
    /// Over its rows, and its large content.
    pub(crate) fn new(
        rows: Arc<dyn LibraryStore>,
        content: Arc<dyn ContentStore>,
        quota: Quota,
    ) -> Self {
        Self {
            content,
            quota,
            rows,
            uses: RwLock::new(()),
            uploads: std::array::from_fn(|_| Mutex::new(())),
        }
    }

    /// The rows.
    pub(crate) fn rows(&self) -> &dyn LibraryStore {
        &*self.rows
    }

    /// [`Self::room`] for one document, unless it is a small answer.
    async fn room_of(
        &self,
        workspace: &str,
        document: &DocumentMetadata,
        content: &[u8],
    ) -> Result<(), Error> {
        let adds = vec![(document.id.clone(), content.len() as u64)];
        self.room_for(workspace, std::slice::from_ref(document), adds)
            .await
    }

    /// [`Self::room`] for documents. Small answers always have room: they are trimmed by number, and a run must not
    /// fail for its trace.
    async fn room_for(
        &self,
        workspace: &str,
        documents: &[DocumentMetadata],
        adds: Vec<(String, u64)>,
    ) -> Result<(), Error> {
        let answers = documents.iter().all(|one| one.document_type == "answer");
        let bytes: u64 = adds.iter().map(|(_, bytes)| bytes).sum();
        if answers && bytes <= (documents.len() * SMALL) as u64 {
            return Ok(());
        }
        self.room(workspace, adds).await
    }

    /// Refuses what the workspace's quota has no room for, before anything of it is written: ids and bytes of
    /// content. What others are adding at this moment is not seen.
    async fn room(&self, workspace: &str, adds: Vec<(String, u64)>) -> Result<(), Error> {
        let (used, more) = self.rows.usage(workspace, adds).await.map_err(wire)?;
        self.quota.check(used, more)
    }

    /// Makes content ready for a row. Large content is kept when this returns; the caller holds
    /// `uses` until its row is written.
    async fn prepare(&self, content: Vec<u8>) -> Result<Prepared, Error> {
        let size = content.len() as u64;
        if content.len() <= SMALL {
            return Ok(Prepared {
                hash: BlobId::of(&content),
                size,
                body: Some(content),
            });
        }
        let hash = self.content.put(content).await.map_err(wire)?;
        Ok(Prepared {
            hash,
            size,
            body: None,
        })
    }

    async fn upload_lock(&self, id: &str) -> MutexGuard<'_, ()> {
        let at = ids::fingerprint(id).unsigned_abs() as usize % LOCKS;
        self.uploads[at].lock().await
    }
}

/// The hash of content, worked out beside the async runtime if that takes a while.
pub(crate) async fn hashed(content: Vec<u8>) -> Result<(BlobId, Vec<u8>), Error> {
    if content.len() <= SMALL {
        return Ok((BlobId::of(&content), content));
    }
    let work = tokio::task::spawn_blocking(move || (BlobId::of(&content), content));
    work.await.map_err(|_| wire(StorageError::Panicked))
}

fn named(document: Option<DocumentMetadata>) -> Result<DocumentMetadata, Error> {
    let document = document.ok_or_else(|| invalid("document-metadata: is required"))?;
    check_id("document-metadata.id", &document.id)?;
    check_said("document-metadata", &document)?;
    Ok(document)
}

/// What is said of a document must fit a page of a listing.
fn check_said(field: &str, document: &DocumentMetadata) -> Result<(), Error> {
    let texts = [&document.kind, &document.title, &document.comments];
    let texts: usize = texts.iter().map(|text| text.len()).sum();
    let tags: usize = document.tags.iter().map(String::len).sum();
    let mut said = texts + tags;
    if !document.metadata.is_empty() {
        said += serde_json::to_vec(&document.metadata).map_or(usize::MAX, |json| json.len());
    }
    if said > SAID {
        let text = format!("{field}: must not exceed {SAID} bytes");
        return Err(Error::new(ErrorCode::TooLarge, text));
    }
    Ok(())
}

pub(crate) fn check_id(field: &str, id: &str) -> Result<(), Error> {
    match id {
        "" => Err(invalid(format!("{field}: is required"))),
        long if long.len() > LONGEST_ID => Err(invalid(format!(
            "{field}: must not be longer than {LONGEST_ID} bytes"
        ))),
        // A line of a log or a terminal would act on them.
        acting if acting.contains(char::is_control) => Err(invalid(format!(
            "{field}: must not have control characters"
        ))),
        _ => Ok(()),
    }
}

/// Documents that come together: each has its content, and they are not too many.
fn check_many(documents: &[DocumentMetadata], contents: &[Vec<u8>]) -> Result<(), Error> {
    let (many, given) = (documents.len(), contents.len());
    if many != given {
        let text = format!(
            "contents: must have one entry for each of {many} document-metadatas, not {given}"
        );
        return Err(invalid(text));
    }
    if many > MOST {
        return Err(invalid(format!(
            "document-metadatas: must not have more than {MOST} entries"
        )));
    }
    Ok(())
}

/// What documents would keep: ids and bytes of content.
fn adds(documents: &[DocumentMetadata], contents: &[Vec<u8>]) -> Vec<(String, u64)> {
    let both = documents.iter().zip(contents);
    both.map(|(document, content)| (document.id.clone(), content.len() as u64))
        .collect()
}

fn complete(document: Option<DocumentMetadata>) -> Result<DocumentMetadata, Error> {
    let mut document = named(document)?;
    if document.kind.is_empty() {
        return Err(invalid("Document kind (MIME type) is required"));
    }
    if document.parent_id == document.id {
        return Err(invalid(
            "document-metadata.parent-id: must not be the document itself",
        ));
    }
    if document.document_type.is_empty() {
        document.document_type = "source".to_owned();
    }
    Ok(document)
}

/// The file of a document's content is not what the row says: told in the log, and how it is mended.
fn damaged(id: &str) -> Error {
    tracing::error!(document = %id, "content of a document is damaged or missing");
    let text = "the document's content is damaged; adding the same content again repairs it";
    Error::new(ErrorCode::Storage, text)
}

#[cfg(test)]
mod tests;
