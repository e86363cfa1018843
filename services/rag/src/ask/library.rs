//! Texts of chunks and titles of documents from the librarian.

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tg_mesh::{Cx, Deadline};
use tg_schemas::msg::{DocumentMetadata, LibrarianRequest, LibrarianResponse, Source};
use tg_schemas::{Error, ErrorCode};

use super::{few, few_or_fault};
use crate::engine::documents::Passage;
use crate::fault;

const LIBRARIAN: &str = "librarian-request";
/// Questions at a time to a librarian that cannot answer for many documents at once.
const AT_ONCE: usize = 8;
/// Longest wait for texts.
const FETCH: Duration = Duration::from_secs(120);
/// Chunk, section, page, document.
const LEVELS: usize = 6;

/// The librarian.
pub struct Library(Cx);

impl Library {
    /// The flow's librarian.
    pub fn of(cx: &Cx) -> Self {
        let mut cx = cx.clone();
        cx.deadline = cx.deadline.min(Deadline::after(FETCH));
        Self(cx)
    }

    /// The texts of chunks, in one question where the librarian can do that. Chunks without one are left out.
    pub async fn texts(&self, chunks: &[String]) -> Result<Vec<Passage>, Error> {
        if chunks.is_empty() {
            return Ok(Vec::new());
        }
        let contents = match self.at_once(chunks).await {
            Ok(contents) => contents,
            Err(error) if fault::over(&error) || error.code().is_transient() => {
                return Err(error);
            }
            Err(_) => self.one_by_one(chunks).await?,
        };
        let mut passages = Vec::with_capacity(chunks.len());
        for (chunk, content) in chunks.iter().zip(contents) {
            match content.filter(|text| !text.trim().is_empty()) {
                Some(text) => passages.push(Passage {
                    chunk: chunk.clone(),
                    text,
                }),
                None => tracing::warn!("a chunk that was found has no text"),
            }
        }
        Ok(passages)
    }

    async fn at_once(&self, chunks: &[String]) -> Result<Vec<Option<String>>, Error> {
        let request = LibrarianRequest {
            operation: "get-contents".to_owned(),
            document_ids: chunks.to_vec(),
            ..LibrarianRequest::default()
        };
        // A large answer may come in parts.
        let mut answer = self.0.ask::<_, LibrarianResponse>(LIBRARIAN, &request)?;
        let mut contents = Vec::with_capacity(chunks.len());
        while let Some(part) = answer.next().await {
            let part = part?;
            if let Some(error) = part.error {
                return Err(error);
            }
            contents.extend(part.contents.iter().map(|content| decode(content)));
        }
        if contents.len() != chunks.len() {
            return Err(Error::new(
                ErrorCode::BadOperation,
                "the library answered for another number of documents",
            ));
        }
        Ok(contents)
    }

    async fn one_by_one(&self, chunks: &[String]) -> Result<Vec<Option<String>>, Error> {
        let asks = chunks.iter().map(|chunk| async move {
            let mut request = self.about("get-document-content", chunk);
            request.document_id.clone_from(chunk);
            match self.last(&request).await {
                Ok(answer) => Ok(decode(&answer.content)),
                Err(error) if fault::over(&error) => Err(error),
                Err(_) => Ok(None),
            }
        });
        few_or_fault(asks.collect(), AT_ONCE).await
    }

    /// The documents that chunks are parts of, by the library's own records. One question per level and chunk:
    /// for where no graph knows it.
    pub async fn documents(&self, chunks: &[String]) -> HashMap<String, Source> {
        let asks = chunks.iter().map(|chunk| async move {
            let source = self.document_of(chunk).await?;
            Some((chunk.clone(), source))
        });
        let found = few(asks.collect(), AT_ONCE).await;
        found.into_iter().flatten().collect()
    }

    async fn document_of(&self, chunk: &str) -> Option<Source> {
        let mut id = chunk.to_owned();
        for _ in 0..LEVELS {
            let request = self.about("get-document-metadata", &id);
            let metadata = self.last(&request).await.ok()?.document_metadata?;
            if metadata.parent_id.is_empty() {
                let title = if metadata.title.is_empty() {
                    id.clone()
                } else {
                    metadata.title
                };
                return Some(Source { uri: id, title });
            }
            id = metadata.parent_id;
        }
        None
    }

    fn about(&self, operation: &str, document: &str) -> LibrarianRequest {
        LibrarianRequest {
            operation: operation.to_owned(),
            document_id: document.to_owned(),
            document_metadata: Some(DocumentMetadata {
                id: document.to_owned(),
                ..DocumentMetadata::default()
            }),
            ..LibrarianRequest::default()
        }
    }

    async fn last(&self, request: &LibrarianRequest) -> Result<LibrarianResponse, Error> {
        let answer = self.0.ask::<_, LibrarianResponse>(LIBRARIAN, request)?;
        answer.last().await
    }
}

fn decode(content: &str) -> Option<String> {
    let bytes = STANDARD.decode(content.trim()).ok()?;
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
}
