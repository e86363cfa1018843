//! The documents of a core: they are the library's, and are handed over to it and asked for there.

use tg_mesh::{Cx, Responder};
use tg_schemas::msg::{DocumentMetadata, KnowledgeResponse, LibraryBlob, LibraryMetadata};
use tg_schemas::{Error, ErrorCode, limits};

use crate::error;
use crate::store::{Cores, Pending};

/// Bytes of one part of a document.
const PART: usize = limits::CONTENT_PART;
/// Documents of one core at most.
const DOCUMENTS: usize = 1_000_000;
/// Stands for an upload where the library has the document already.
const KNOWN: &str = "known";

/// The library of the workspace that a question is about.
pub(crate) struct Library<'a> {
    cx: &'a Cx,
    library: tg_clients::library::Library,
}

impl<'a> Library<'a> {
    pub(crate) fn new(cx: &'a Cx) -> Self {
        Self {
            cx,
            library: tg_clients::library::Library::of_workspace(cx),
        }
    }

    /// A document of the library.
    async fn document(&self, id: &str) -> Result<Option<DocumentMetadata>, Error> {
        self.library.find(id).await.map_err(error::library)
    }

    /// Sends a document and all that was made of it, each after its parent. A core whose document is not in
    /// the library has none.
    pub(crate) async fn send_tree(
        &self,
        root: &str,
        out: &mut Responder<KnowledgeResponse>,
    ) -> Result<(), Error> {
        let mut waiting: Vec<DocumentMetadata> = self.document(root).await?.into_iter().collect();
        let mut sent = 0;
        while let Some(document) = waiting.pop() {
            sent += 1;
            if sent > DOCUMENTS {
                let text = format!("the document has more than {DOCUMENTS} parts");
                return Err(Error::new(ErrorCode::TooLarge, text));
            }
            let id = document.id.clone();
            let reply = KnowledgeResponse {
                library_metadata: Some(told(document)),
                ..KnowledgeResponse::default()
            };
            out.send(reply).await?;
            self.send_content(&id, out).await?;
            let children = self.library.children(&id).await;
            let children = children.map_err(error::library)?;
            waiting.extend(children.into_iter().rev());
        }
        Ok(())
    }

    async fn send_content(
        &self,
        id: &str,
        out: &mut Responder<KnowledgeResponse>,
    ) -> Result<(), Error> {
        let mut content = self.library.stream(id, PART)?;
        let mut offset = 0;
        while let Some(piece) = content.next_piece().await.map_err(error::library)? {
            let length = decoded_length(&piece.base64)?;
            // What is one part is whole.
            let total = match usize::try_from(piece.total) {
                Ok(total) if total > PART => piece.total,
                _ => 0,
            };
            let blob = LibraryBlob {
                id: id.to_owned(),
                data: piece.base64,
                offset,
                total,
            };
            out.send(KnowledgeResponse {
                library_blob: Some(blob),
                ..KnowledgeResponse::default()
            })
            .await?;
            offset += length;
        }
        Ok(())
    }

    /// Takes the content of a document that was announced, or a part of it. The library has it when `Ok`.
    pub(crate) async fn take(
        &self,
        cores: &Cores,
        now: i64,
        blob: LibraryBlob,
    ) -> Result<(), Error> {
        let workspace = self.cx.workspace_key();
        let workspace = workspace.as_str();
        let Some(pending) = cores.announced(workspace, &blob.id).await? else {
            // It came twice, or another hand brought it.
            return match self.document(&blob.id).await? {
                Some(_) => Ok(()),
                None => Err(error::field(
                    "library-blob.id",
                    "the metadata of a document goes before its content",
                )),
            };
        };
        let whole = blob.total <= 0;
        let done = if whole {
            self.add(&pending, now, blob.data).await?;
            true
        } else {
            self.take_part(cores, pending, now, &blob).await?
        };
        if done {
            cores.arrived(workspace, &blob.id).await?;
        }
        Ok(())
    }

    async fn add(&self, pending: &Pending, now: i64, content: String) -> Result<(), Error> {
        let added = self.library.add(document(&pending.metadata, now), content);
        added.await.map_err(error::library)
    }

    /// Takes one part; whether it was the last.
    async fn take_part(
        &self,
        cores: &Cores,
        pending: Pending,
        now: i64,
        blob: &LibraryBlob,
    ) -> Result<bool, Error> {
        let length = decoded_length(&blob.data)?;
        let last = end(blob.offset, length) == blob.total;
        let (upload, chunk) = if blob.offset == 0 {
            let begun = self.begin(&pending, now, blob.total, length).await?;
            let workspace = self.cx.workspace_key();
            let noted = cores.uploading(workspace.as_str(), &blob.id, begun.clone(), length);
            noted.await?;
            (begun, length)
        } else {
            (pending.upload, pending.chunk)
        };
        if upload.is_empty() || chunk <= 0 {
            return Err(error::field(
                "library-blob.offset",
                "the part from 0 on is required first",
            ));
        }
        let fits = blob.offset >= 0
            && blob.offset % chunk == 0
            && end(blob.offset, length) <= blob.total
            && (last || length == chunk);
        if !fits {
            let why = "parts of a document must be of one size, but for the last";
            return Err(error::field("library-blob.offset", why));
        }
        if upload == KNOWN {
            return Ok(last);
        }
        let part = blob.offset / chunk;
        let taken = self.library.upload_part(&upload, part, blob.data.clone());
        taken.await.map_err(error::library)?;
        if last {
            let completed = self.library.complete_upload(&upload).await;
            completed.map_err(error::library)?;
        }
        Ok(last)
    }

    async fn begin(
        &self,
        pending: &Pending,
        now: i64,
        total: i64,
        chunk: i64,
    ) -> Result<String, Error> {
        if !pending.upload.is_empty() && pending.upload != KNOWN {
            // What an earlier try left; gone by itself in a day if this fails.
            let _ = self.library.abort_upload(&pending.upload).await;
        }
        let document = document(&pending.metadata, now);
        let begun = self.library.begin_upload(document, total, chunk).await;
        let begun = begun.map_err(error::library)?;
        Ok(begun.unwrap_or_else(|| KNOWN.to_owned()))
    }
}

/// Where a part ends. Its offset comes from a client: a sum that wraps would lie before the end of the document.
fn end(offset: i64, length: i64) -> i64 {
    offset.saturating_add(length)
}

fn told(document: DocumentMetadata) -> LibraryMetadata {
    LibraryMetadata {
        id: document.id,
        kind: document.kind,
        title: document.title,
        parent_id: document.parent_id,
        document_type: document.document_type,
        comments: document.comments,
        tags: document.tags,
    }
}

fn document(told: &LibraryMetadata, now: i64) -> DocumentMetadata {
    DocumentMetadata {
        id: told.id.clone(),
        time: now / 1000,
        kind: told.kind.clone(),
        title: told.title.clone(),
        comments: told.comments.clone(),
        tags: told.tags.clone(),
        parent_id: told.parent_id.clone(),
        document_type: told.document_type.clone(),
        ..DocumentMetadata::default()
    }
}

/// Bytes behind a base64 text without line ends.
fn decoded_length(text: &str) -> Result<i64, Error> {
    if !text.len().is_multiple_of(4) {
        return Err(error::field(
            "library-blob.data",
            "must be base64 in one line",
        ));
    }
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    Ok((text.len() / 4 * 3 - padding.min(2)) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_behind_all_places_ends_behind_all_documents() {
        assert_eq!(end(6, 3), 9);
        assert_eq!(end(i64::MAX, 3), i64::MAX);
    }

    #[test]
    fn lengths_are_known_without_decoding() {
        assert_eq!(decoded_length("aGVsbG8="), Ok(5));
        assert_eq!(decoded_length(""), Ok(0));
        assert!(decoded_length("aGV").is_err());
        assert_eq!(PART % 3, 0);
    }

    #[test]
    fn what_is_told_of_a_document_comes_back() {
        let one = LibraryMetadata {
            id: "urn:d".into(),
            kind: "text/plain".into(),
            title: "T".into(),
            parent_id: "urn:p".into(),
            document_type: "page".into(),
            comments: "c".into(),
            tags: vec!["x".into()],
        };
        assert_eq!(told(document(&one, 5_000)), one);
        assert_eq!(document(&one, 5_000).time, 5);
    }
}
