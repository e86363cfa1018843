//! Texts of chunks and titles of documents from the librarian.

use std::time::Duration;

use tg_clients::library;
use tg_mesh::Cx;
use tg_schemas::Error;
use tg_schemas::msg::{DocumentMetadata, Source};

use crate::engine::documents::Passage;

/// Longest wait for texts.
const FETCH: Duration = Duration::from_secs(120);

/// The librarian.
pub struct Library(library::Library);

impl Library {
    /// The flow's librarian.
    pub fn of(cx: &Cx) -> Self {
        Self(library::Library::of_flow(cx).at_most(FETCH))
    }

    /// The texts of chunks with where they stand. Chunks without one are left out.
    pub async fn texts(&self, chunks: &[String]) -> Result<Vec<Passage>, Error> {
        let texts = self.0.texts(chunks).await?;
        let mut passages = Vec::with_capacity(chunks.len());
        for (chunk, text) in chunks.iter().zip(texts) {
            match text.filter(|passage| !passage.text.trim().is_empty()) {
                Some(library::Passage { text, context }) => passages.push(Passage {
                    chunk: chunk.clone(),
                    text,
                    context,
                }),
                None => tracing::warn!("a chunk found by the search has no text"),
            }
        }
        Ok(passages)
    }

    /// The documents that chunks are parts of, in order, by the library's own records: for where no graph knows them.
    pub async fn documents(&self, chunks: &[String]) -> Vec<Option<Source>> {
        let found = self.0.documents_of(chunks).await;
        let named = |document: DocumentMetadata| Source {
            uri: document.id,
            title: document.title,
        };
        let found = found.into_iter();
        found.map(|document| document.map(named)).collect()
    }
}
