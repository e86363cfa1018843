//! Changing and removing documents.

use tg_schemas::Error;
use tg_schemas::msg::DocumentMetadata;

use super::{Library, named};
use crate::engine::asker::Asker;
use crate::error::{missing_document, wire};

impl Library {
    /// Overwrites time, title, comments, metadata and tags, and the content if some is given.
    pub(crate) async fn update(
        &self,
        asker: &Asker,
        document: Option<DocumentMetadata>,
        content: Option<Vec<u8>>,
    ) -> Result<(), Error> {
        let document = named(document)?;
        let workspace = &asker.workspace;
        let known = self.rows.document(workspace, &document.id);
        known.await.map_err(wire)?.ok_or_else(missing_document)?;
        if let Some(content) = &content {
            self.room(workspace, vec![(document.id.clone(), content.len() as u64)])
                .await?;
        }
        let _shared = self.uses.read().await;
        let prepared = match content {
            Some(content) => Some(self.prepare(content).await?),
            None => None,
        };
        let updated = self.rows.update(workspace, document, prepared);
        match updated.await.map_err(wire)? {
            true => Ok(()),
            false => Err(missing_document()),
        }
    }

    /// Removes a document with all that was cut from it, its processing records, and, as soon as their
    /// flows run, what was processed from it.
    pub(crate) async fn remove(&self, asker: &Asker, id: &str) -> Result<(), Error> {
        self.rows.remove(asker, id).await.map_err(wire)?;
        self.remove_unused().await;
        Ok(())
    }
}
