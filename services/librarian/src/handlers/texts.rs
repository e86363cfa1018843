//! Takes in the texts that traces link to.

use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::clock;
use tg_mesh::{ConsumeError, Cx, LeasedStore, RecordConsumer};
use tg_schemas::msg::{DocumentMetadata, LibraryText, LibraryTexts};
use tg_schemas::{Error, ErrorCode, WorkspaceKey};

use crate::engine::asker::Asker;
use crate::librarian::Librarian;

/// Reads `library-texts` of the system. Whoever wrote a text has promised it in a trace: what stands in the way
/// passes, and it comes again.
pub(crate) struct Texts(pub(crate) Arc<LeasedStore<Librarian>>);

#[async_trait]
impl RecordConsumer<LibraryTexts> for Texts {
    async fn consume(&self, cx: Cx, record: LibraryTexts) -> Result<(), ConsumeError> {
        let generation = cx.headers.generation;
        let generation = generation.unwrap_or_else(|| cx.config().generation(&record.workspace));
        let key = WorkspaceKey::new(&record.workspace, generation);
        if cx.config().has_ended(&key) {
            // It came after the workspace was deleted.
            return Ok(());
        }
        let outcome = async { self.0.get().await?.take_in(&key, record).await };
        outcome.await.map_err(|error: Error| match error.code() {
            ErrorCode::BadRequest => ConsumeError::Dead(error),
            _ => ConsumeError::Retry { error, after: None },
        })
    }
}

impl Librarian {
    async fn take_in(&self, key: &WorkspaceKey, record: LibraryTexts) -> Result<(), Error> {
        let asker = Asker {
            workspace: key.to_string(),
            now: clock::millis(),
            ..Asker::default()
        };
        let texts = record.texts.into_iter();
        let (documents, contents) = texts
            .map(|text| (document(&text), text.text.into_bytes()))
            .unzip();
        // One that is there already, with whatever content, stays as it is.
        self.library.add_all(&asker, documents, contents).await?;
        Ok(())
    }
}

fn document(text: &LibraryText) -> DocumentMetadata {
    DocumentMetadata {
        id: text.id.clone(),
        time: text.time,
        kind: "text/plain".to_owned(),
        title: text.title.clone(),
        document_type: "answer".to_owned(),
        ..DocumentMetadata::default()
    }
}
