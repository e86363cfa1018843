//! Parts of documents: pages, sections, chunks.

use tg_schemas::Error;
use tg_schemas::msg::DocumentMetadata;

use super::{Library, adds, check_id, check_many, check_said, complete};
use crate::engine::asker::Asker;
use crate::error::wire;
use crate::store::documents::Added;

impl Library {
    /// Adds a part of a document. The same part again is fine. Returns its id.
    pub(crate) async fn add_child(
        &self,
        asker: &Asker,
        document: Option<DocumentMetadata>,
        content: Vec<u8>,
    ) -> Result<String, Error> {
        let mut document = complete(document)?;
        check_id("document-metadata.parent-id", &document.parent_id)?;
        if document.document_type == "source" {
            document.document_type = "extracted".to_owned();
        }
        let id = document.id.clone();
        self.room_of(&asker.workspace, &document, &content).await?;
        let _shared = self.uses.read().await;
        let prepared = self.prepare(content).await?;
        let added = self.rows.add_child(asker, (document, prepared));
        added.await.map_err(wire)?;
        Ok(id)
    }

    /// Adds parts. Says what is to be done about them, of processors told apart if that is asked for.
    pub(crate) async fn add_children(
        &self,
        asker: &Asker,
        documents: Vec<DocumentMetadata>,
        contents: Vec<Vec<u8>>,
        told_apart: bool,
    ) -> Result<Added, Error> {
        check_many(&documents, &contents)?;
        self.room_for(&asker.workspace, &documents, adds(&documents, &contents))
            .await?;
        let _shared = self.uses.read().await;
        let mut children = Vec::with_capacity(documents.len());
        for (at, (mut document, content)) in documents.into_iter().zip(contents).enumerate() {
            check_id(&format!("document-metadatas[{at}].id"), &document.id)?;
            let parent = format!("document-metadatas[{at}].parent-id");
            check_id(&parent, &document.parent_id)?;
            check_said(&format!("document-metadatas[{at}]"), &document)?;
            if document.kind.is_empty() {
                document.kind = "text/plain".to_owned();
            }
            children.push((document, self.prepare(content).await?));
        }
        let added = self.rows.add_children(asker, children, told_apart);
        added.await.map_err(wire)
    }

    /// A document was cut to its end. `confirmed` are parts whose retraction was published: they are
    /// forgotten. Returns parts of earlier runs that are gone, where that is certain already; of a document
    /// that is cut in several places it is certain at the end of the run, and the library sees to it then.
    pub(crate) async fn finish_children(
        &self,
        asker: &Asker,
        id: &str,
        confirmed: Vec<String>,
    ) -> Result<Vec<DocumentMetadata>, Error> {
        let finished = self.rows.finish_children(asker, id, confirmed);
        finished.await.map_err(wire)
    }
}
