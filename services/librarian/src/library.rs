//! The library's operations. Knows no bus: the handler passes workspace, question id and fields.

use std::path::Path;

use tg_schemas::Error;
use tg_schemas::msg::DocumentMetadata;
use tg_storage::blob::{BlobId, BlobStore};
use tg_storage::{Database, Durability, StorageError};
use tokio::sync::RwLock;

use crate::fault::{existing_document, invalid, missing_document, wire};
use crate::store;

/// Documents of all workspaces.
pub(crate) struct Library {
    rows: Database,
    content: BlobStore,
    /// Content that is being added must not be removed as unused: adders share, removers are alone.
    uses: RwLock<()>,
}

/// Who asks, and under which question id.
#[derive(Clone)]
pub(crate) struct Asker {
    pub(crate) workspace: String,
    pub(crate) question: String,
}

/// A piece of a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) bytes: Vec<u8>,
    pub(crate) index: u64,
    pub(crate) pieces: u64,
    /// Bytes up to the end of this piece.
    pub(crate) received: u64,
    pub(crate) total: u64,
}

/// A document to be read piece by piece.
pub(crate) struct Pieces {
    content: BlobStore,
    id: BlobId,
    size: u64,
    piece: u64,
    next: u64,
}

impl Library {
    /// Opens the library in a directory of its own. Blocks.
    pub(crate) fn open(
        rows: &Path,
        content: &Path,
        durability: Durability,
    ) -> Result<Self, StorageError> {
        // The database's lock guards the directory too.
        let rows = Database::open(rows, store::MIGRATIONS, durability)?;
        Ok(Self {
            content: BlobStore::open(content, durability)?,
            rows,
            uses: RwLock::new(()),
        })
    }

    /// Adds a document. Adding it again with the same content is fine when the same question asks again,
    /// and for answers, whose ids follow from what they answer.
    pub(crate) async fn add(
        &self,
        asker: &Asker,
        document: Option<DocumentMetadata>,
        content: Vec<u8>,
    ) -> Result<(), Error> {
        let document = complete(document)?;
        self.insert(asker, document, content).await
    }

    /// Adds a part of a document.
    pub(crate) async fn add_child(
        &self,
        asker: &Asker,
        document: Option<DocumentMetadata>,
        content: Vec<u8>,
    ) -> Result<String, Error> {
        let mut document = complete(document)?;
        if document.parent_id.is_empty() {
            return Err(invalid("document-metadata.parent-id: is required"));
        }
        self.get(asker, &document.parent_id).await?;
        if matches!(document.document_type.as_str(), "" | "source") {
            document.document_type = "extracted".to_owned();
        }
        let id = document.id.clone();
        self.insert(asker, document, content).await?;
        Ok(id)
    }

    async fn insert(
        &self,
        asker: &Asker,
        document: DocumentMetadata,
        content: Vec<u8>,
    ) -> Result<(), Error> {
        let _shared = self.uses.read().await;
        let hash = self.content.put(content).await.map_err(wire)?.to_string();
        let asker = asker.clone();
        let write = self.rows.write(move |tx| {
            if !store::note(tx, &asker.question)? {
                return Ok(());
            }
            match store::get(tx, &asker.workspace, &document.id)? {
                None => store::insert(tx, &asker.workspace, &document, &hash),
                Some(known) if is_same_answer(&known, &document, &hash) => Ok(()),
                Some(_) => Err(StorageError::Refused(existing_document())),
            }
        });
        write.await.map_err(wire)
    }

    /// Overwrites time, title, comments, metadata and tags.
    pub(crate) async fn update(
        &self,
        asker: &Asker,
        document: Option<DocumentMetadata>,
    ) -> Result<(), Error> {
        let document = named(document)?;
        let asker = asker.clone();
        let write =
            self.rows.write(
                move |tx| match store::update(tx, &asker.workspace, &document)? {
                    true => Ok(()),
                    false => Err(StorageError::Refused(missing_document())),
                },
            );
        write.await.map_err(wire)
    }

    /// Removes a document, its parts, and content that nobody else has.
    pub(crate) async fn remove(&self, asker: &Asker, id: &str) -> Result<(), Error> {
        let _alone = self.uses.write().await;
        let (asker, id) = (asker.clone(), id.to_owned());
        let write = self.rows.write(move |tx| {
            if !store::note(tx, &asker.question)? {
                return Ok(Vec::new());
            }
            store::remove(tx, &asker.workspace, &id)?
                .ok_or(StorageError::Refused(missing_document()))
        });
        let orphans = write.await.map_err(wire)?;
        for orphan in orphans.iter().filter_map(|hash| BlobId::parse(hash)) {
            if let Err(fault) = self.content.remove(orphan).await {
                tracing::warn!(%fault, "content of a removed document stays");
            }
        }
        Ok(())
    }

    /// A document's metadata.
    pub(crate) async fn metadata(
        &self,
        asker: &Asker,
        id: &str,
    ) -> Result<DocumentMetadata, Error> {
        Ok(self.get(asker, id).await?.document)
    }

    /// A document's content as a whole.
    pub(crate) async fn content(&self, asker: &Asker, id: &str) -> Result<Vec<u8>, Error> {
        let hash = blob(&self.get(asker, id).await?)?;
        let content = self.content.get(hash).await.map_err(wire)?;
        content.ok_or_else(|| wire(lost()))
    }

    /// A document's content in pieces.
    pub(crate) async fn pieces(
        &self,
        asker: &Asker,
        id: &str,
        piece: u64,
    ) -> Result<Pieces, Error> {
        let id = blob(&self.get(asker, id).await?)?;
        let size = self.content.size(id).await.map_err(wire)?;
        Ok(Pieces {
            content: self.content.clone(),
            id,
            size: size.ok_or_else(|| wire(lost()))?,
            piece: piece.max(1),
            next: 0,
        })
    }

    /// Documents of the workspace; parts of others and answers only when everything is asked for.
    pub(crate) async fn list(
        &self,
        asker: &Asker,
        everything: bool,
    ) -> Result<Vec<DocumentMetadata>, Error> {
        let workspace = asker.workspace.clone();
        let read = self
            .rows
            .read(move |conn| store::list(conn, &workspace, everything));
        read.await.map_err(wire)
    }

    /// Direct parts of a document.
    pub(crate) async fn children(
        &self,
        asker: &Asker,
        parent: &str,
    ) -> Result<Vec<DocumentMetadata>, Error> {
        let (workspace, parent) = (asker.workspace.clone(), parent.to_owned());
        let read = self
            .rows
            .read(move |conn| store::children(conn, &workspace, &parent));
        read.await.map_err(wire)
    }

    async fn get(&self, asker: &Asker, id: &str) -> Result<store::Stored, Error> {
        let (workspace, id) = (asker.workspace.clone(), id.to_owned());
        let read = self
            .rows
            .read(move |conn| store::get(conn, &workspace, &id));
        read.await.map_err(wire)?.ok_or_else(missing_document)
    }
}

impl Pieces {
    /// The next piece; an empty document has one empty piece.
    pub(crate) async fn next(&mut self) -> Result<Option<Piece>, Error> {
        let pieces = self.size.div_ceil(self.piece).max(1);
        if self.next >= pieces {
            return Ok(None);
        }
        let index = self.next;
        self.next += 1;
        let from = index * self.piece;
        let length = usize::try_from(self.piece).unwrap_or(usize::MAX);
        let bytes = self.content.get_range(self.id, from, length).await;
        let bytes = bytes.map_err(wire)?.ok_or_else(|| wire(lost()))?;
        Ok(Some(Piece {
            received: from + bytes.len() as u64,
            bytes,
            index,
            pieces,
            total: self.size,
        }))
    }

    /// Whether all pieces were read.
    pub(crate) fn ended(&self) -> bool {
        self.next >= self.size.div_ceil(self.piece).max(1)
    }
}

fn named(document: Option<DocumentMetadata>) -> Result<DocumentMetadata, Error> {
    let document = document.ok_or_else(|| invalid("document-metadata: is required"))?;
    if document.id.is_empty() {
        return Err(invalid("document-metadata.id: is required"));
    }
    Ok(document)
}

fn complete(document: Option<DocumentMetadata>) -> Result<DocumentMetadata, Error> {
    let mut document = named(document)?;
    if document.kind.is_empty() {
        return Err(invalid("Document kind (MIME type) is required"));
    }
    if document.document_type.is_empty() {
        document.document_type = "source".to_owned();
    }
    Ok(document)
}

fn is_same_answer(known: &store::Stored, new: &DocumentMetadata, hash: &str) -> bool {
    new.document_type == "answer"
        && known.document.document_type == "answer"
        && known.document.kind == new.kind
        && known.content == hash
}

fn blob(stored: &store::Stored) -> Result<BlobId, Error> {
    BlobId::parse(&stored.content).ok_or_else(|| wire(lost()))
}

fn lost() -> StorageError {
    StorageError::Corrupt("content of a document is missing".to_owned())
}

#[cfg(test)]
mod tests;
