//! Takes in the texts that traces link to.

use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::deadline::now_millis;
use tg_mesh::{Cx, OwnedStore, Read, ReadFault};
use tg_schemas::msg::{DocumentMetadata, LibraryText, LibraryTexts};
use tg_schemas::{Error, ErrorCode};

use crate::library::Asker;
use crate::service::Librarian;

/// Reads `library-texts` of the system. Whoever wrote a text has promised it in a trace: what stands in the way
/// passes, and it comes again.
pub(crate) struct Texts(pub(crate) Arc<OwnedStore<Librarian>>);

#[async_trait]
impl Read<LibraryTexts> for Texts {
    async fn read(&self, cx: Cx, record: LibraryTexts) -> Result<(), ReadFault> {
        let workspace = record.workspace.clone();
        let outcome = async {
            let librarian = self.0.get().await?;
            librarian.take_in(record).await?;
            let view = cx.config();
            if view.version() >= 0 && !view.has_workspace(&workspace) {
                // It came after the workspace was deleted, and is forgotten with what that left.
                librarian.chores.lock().look_again();
                librarian.wake.notify_one();
            }
            Ok(())
        };
        outcome.await.map_err(|error: Error| match error.code() {
            ErrorCode::BadRequest => ReadFault::Dead(error),
            _ => ReadFault::Retry { error, after: None },
        })
    }
}

impl Librarian {
    async fn take_in(&self, record: LibraryTexts) -> Result<(), Error> {
        let asker = Asker {
            workspace: record.workspace,
            now: i64::try_from(now_millis()).unwrap_or(i64::MAX),
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
