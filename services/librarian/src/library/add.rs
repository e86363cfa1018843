//! Adding documents.

use tg_schemas::Error;
use tg_schemas::msg::DocumentMetadata;
use tg_storage::StorageError;
use tg_storage::rusqlite::Transaction;

use super::{Asker, Library, check_id, check_many, complete, hashed};
use crate::engine::ids;
use crate::fault::{existing_document, invalid};
use crate::store;
use crate::store::content::{self, Prepared};
use crate::store::document;

impl Library {
    /// Adds a document. Adding it again with the same content is fine when the same question asks again,
    /// and for answers, whose ids follow from what they answer.
    pub(crate) async fn add(
        &self,
        asker: &Asker,
        document: Option<DocumentMetadata>,
        content: Vec<u8>,
    ) -> Result<(), Error> {
        let document = complete(document)?;
        self.room(&asker.workspace, &[&document], content.len())
            .await?;
        let _shared = self.uses.read().await;
        let prepared = self.prepare(content).await?;
        let asker = asker.clone();
        self.write(move |tx| insert_new(tx, &asker, &document, &prepared))
            .await
    }

    /// Adds documents that are not there yet; one whose id is known stays as it is. Returns those of them
    /// that have other content than was sent.
    pub(crate) async fn add_all(
        &self,
        asker: &Asker,
        documents: Vec<DocumentMetadata>,
        contents: Vec<Vec<u8>>,
    ) -> Result<Vec<DocumentMetadata>, Error> {
        check_many(&documents, &contents)?;
        let documents = documents.into_iter().map(|one| complete(Some(one)));
        let documents = documents.collect::<Result<Vec<_>, _>>()?;
        let all: Vec<_> = documents.iter().collect();
        let bytes = contents.iter().map(Vec::len).sum();
        self.room(&asker.workspace, &all, bytes).await?;
        let _shared = self.uses.read().await;
        let mut new = Vec::with_capacity(documents.len());
        for (document, content) in documents.into_iter().zip(contents) {
            new.push((document, self.prepare(content).await?));
        }
        let asker = asker.clone();
        self.write(move |tx| {
            let mut others = Vec::new();
            for (document, prepared) in &new {
                match document::get(tx, &asker.workspace, &document.id)? {
                    None => insert(tx, &asker.workspace, document, prepared)?,
                    Some(known) if has(tx, &known, prepared)? => {}
                    Some(known) => others.push(known.document),
                }
            }
            Ok(others)
        })
        .await
    }

    /// Sees to it that a document that somebody sent along with its content is in the library. Without an
    /// id it gets one that follows from the content; a known id with other content has that from now on.
    /// Returns the id.
    pub(crate) async fn ensure(
        &self,
        asker: &Asker,
        document: Option<DocumentMetadata>,
        content: Vec<u8>,
    ) -> Result<String, Error> {
        let mut document = document.unwrap_or_default();
        let (hash, content) = hashed(content).await?;
        if document.id.is_empty() {
            document.id = ids::document(&hash);
        }
        check_id("document-metadata.id", &document.id)?;
        if document.kind.is_empty() {
            document.kind = "text/plain".to_owned();
        }
        if document.time == 0 {
            document.time = asker.now / 1000;
        }
        let document = complete(Some(document))?;
        self.room(&asker.workspace, &[&document], content.len())
            .await?;
        let _shared = self.uses.read().await;
        let prepared = self.prepare(content).await?;
        let (asker, id) = (asker.clone(), document.id.clone());
        self.write(move |tx| {
            if !store::note(tx, &asker.question)? {
                return Ok(());
            }
            match document::get(tx, &asker.workspace, &document.id)? {
                None => insert(tx, &asker.workspace, &document, &prepared),
                Some(known) if has(tx, &known, &prepared)? => Ok(()),
                Some(known) if known.document.kind != document.kind => {
                    let text = "document-metadata.kind: the document exists with another kind";
                    Err(StorageError::Refused(invalid(text)))
                }
                Some(known) => document::set_content(tx, &known, &prepared),
            }
        })
        .await?;
        Ok(id)
    }
}

/// Adds a document that is not there yet.
pub(super) fn insert_new(
    tx: &Transaction<'_>,
    asker: &Asker,
    document: &DocumentMetadata,
    prepared: &Prepared,
) -> Result<(), StorageError> {
    if !store::note(tx, &asker.question)? {
        return Ok(());
    }
    match document::get(tx, &asker.workspace, &document.id)? {
        None => insert(tx, &asker.workspace, document, prepared),
        Some(known) if is_same_answer(tx, &known, document, prepared)? => Ok(()),
        Some(_) => Err(StorageError::Refused(existing_document())),
    }
}

pub(super) fn insert(
    tx: &Transaction<'_>,
    workspace: &str,
    document: &DocumentMetadata,
    prepared: &Prepared,
) -> Result<(), StorageError> {
    let number = content::acquire(tx, prepared)?;
    document::insert(tx, workspace, document, number)
}

/// Whether a document has this content.
pub(super) fn has(
    tx: &Transaction<'_>,
    known: &document::Stored,
    prepared: &Prepared,
) -> Result<bool, StorageError> {
    Ok(content::hash(tx, known.content)? == Some(prepared.hash))
}

fn is_same_answer(
    tx: &Transaction<'_>,
    known: &document::Stored,
    new: &DocumentMetadata,
    prepared: &Prepared,
) -> Result<bool, StorageError> {
    Ok(new.document_type == "answer"
        && known.document.document_type == "answer"
        && known.document.kind == new.kind
        && has(tx, known, prepared)?)
}
