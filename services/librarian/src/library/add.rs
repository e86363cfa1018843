//! Adding documents.

use tg_schemas::Error;
use tg_schemas::msg::DocumentMetadata;

use super::{Library, adds, check_id, check_many, complete, hashed};
use crate::engine::asker::Asker;
use crate::engine::ids;
use crate::error::wire;

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
        self.room_of(&asker.workspace, &document, &content).await?;
        let _shared = self.uses.read().await;
        let prepared = self.prepare(content).await?;
        let added = self.rows.add_new(asker, (document, prepared));
        added.await.map_err(wire)
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
        self.room_for(&asker.workspace, &documents, adds(&documents, &contents))
            .await?;
        let _shared = self.uses.read().await;
        let mut new = Vec::with_capacity(documents.len());
        for (document, content) in documents.into_iter().zip(contents) {
            new.push((document, self.prepare(content).await?));
        }
        self.rows.add_all(asker, new).await.map_err(wire)
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
        self.room_of(&asker.workspace, &document, &content).await?;
        let _shared = self.uses.read().await;
        let prepared = self.prepare(content).await?;
        let id = document.id.clone();
        let ensured = self.rows.ensure(asker, (document, prepared));
        ensured.await.map_err(wire)?;
        Ok(id)
    }
}
