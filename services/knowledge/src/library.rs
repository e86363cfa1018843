//! The documents of a core: they are the library's, and are handed over to it and asked for there.

use tg_mesh::{Cx, Out};
use tg_schemas::msg::{
    DocumentMetadata, KnowledgeResponse, LibrarianRequest, LibrarianResponse, LibraryBlob,
    LibraryMetadata,
};
use tg_schemas::{Class, Error, ErrorCode, Topic};

use crate::fault;
use crate::store::{Cores, Pending};

/// Bytes of one part of a document; a multiple of three, so that base64 texts can be joined.
const PART: i64 = 3 << 20;
/// Documents of one core at most.
const DOCUMENTS: usize = 1_000_000;
/// Stands for an upload where the library has the document already.
const KNOWN: &str = "known";

/// The library of the workspace that a question is about.
pub(crate) struct Library<'a> {
    cx: &'a Cx,
    topic: Topic,
}

impl<'a> Library<'a> {
    pub(crate) fn new(cx: &'a Cx) -> Result<Self, Error> {
        let workspace = cx.scope.workspace.as_ref();
        let workspace = workspace.ok_or_else(|| fault::field("workspace", "is required"))?;
        Ok(Self {
            cx,
            topic: Topic::workspace(Class::Request, "librarian", workspace),
        })
    }

    async fn ask(&self, question: &LibrarianRequest) -> Result<LibrarianResponse, Error> {
        let answer = self.cx.ask_topic(&self.topic, question);
        answer.last().await
    }

    /// A document of the library.
    async fn document(&self, id: &str) -> Result<Option<DocumentMetadata>, Error> {
        let question = LibrarianRequest {
            operation: "get-document-metadata".to_owned(),
            document_id: id.to_owned(),
            ..LibrarianRequest::default()
        };
        match self.ask(&question).await {
            Ok(reply) => Ok(reply.document_metadata),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(fault::library(&error)),
        }
    }

    /// Sends a document and all that was made of it, each after its parent. A core whose document is not in
    /// the library has none.
    pub(crate) async fn send_tree(
        &self,
        root: &str,
        out: &mut Out<KnowledgeResponse>,
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
            let question = LibrarianRequest {
                operation: "list-children".to_owned(),
                document_id: id,
                ..LibrarianRequest::default()
            };
            let children = self.ask(&question).await;
            let children = children.map_err(|error| fault::library(&error))?;
            waiting.extend(children.document_metadatas.into_iter().rev());
        }
        Ok(())
    }

    async fn send_content(&self, id: &str, out: &mut Out<KnowledgeResponse>) -> Result<(), Error> {
        let question = LibrarianRequest {
            operation: "stream-document".to_owned(),
            document_id: id.to_owned(),
            chunk_size: PART,
            ..LibrarianRequest::default()
        };
        let mut answer = self
            .cx
            .ask_topic::<_, LibrarianResponse>(&self.topic, &question);
        let mut offset = 0;
        while let Some(part) = answer.next().await {
            let part = part.map_err(|error| fault::library(&error))?;
            if let Some(error) = &part.error {
                return Err(fault::library(error));
            }
            let length = decoded_length(&part.content)?;
            // What is one part is whole.
            let total = if part.total_bytes > PART {
                part.total_bytes
            } else {
                0
            };
            let blob = LibraryBlob {
                id: id.to_owned(),
                data: part.content,
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
                None => Err(fault::field(
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
        let document = document(&pending.metadata, now);
        let operation = match document.parent_id.as_str() {
            "" => "add-document",
            _ => "add-child-document",
        };
        let question = LibrarianRequest {
            operation: operation.to_owned(),
            document_id: document.id.clone(),
            document_metadata: Some(document),
            content,
            ..LibrarianRequest::default()
        };
        match self.ask(&question).await {
            Err(error) if error.code() != ErrorCode::Conflict => Err(fault::library(&error)),
            _ => Ok(()),
        }
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
        let last = blob.offset + length == blob.total;
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
            return Err(fault::field(
                "library-blob.offset",
                "the first part is missing",
            ));
        }
        let fits = blob.offset >= 0
            && blob.offset % chunk == 0
            && blob.offset + length <= blob.total
            && (last || length == chunk);
        if !fits {
            let why = "parts of a document must be of one size, but for the last";
            return Err(fault::field("library-blob.offset", why));
        }
        if upload == KNOWN {
            return Ok(last);
        }
        let question = LibrarianRequest {
            operation: "upload-chunk".to_owned(),
            upload_id: upload.clone(),
            chunk_index: blob.offset / chunk,
            content: blob.data.clone(),
            ..LibrarianRequest::default()
        };
        let taken = self.ask(&question).await;
        taken.map_err(|error| fault::library(&error))?;
        if last {
            let question = LibrarianRequest {
                operation: "complete-upload".to_owned(),
                upload_id: upload,
                ..LibrarianRequest::default()
            };
            match self.ask(&question).await {
                Err(error) if error.code() != ErrorCode::Conflict => {
                    return Err(fault::library(&error));
                }
                _ => {}
            }
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
            let question = LibrarianRequest {
                operation: "abort-upload".to_owned(),
                upload_id: pending.upload.clone(),
                ..LibrarianRequest::default()
            };
            let _ = self.ask(&question).await;
        }
        let question = LibrarianRequest {
            operation: "begin-upload".to_owned(),
            document_metadata: Some(document(&pending.metadata, now)),
            total_size: total,
            chunk_size: chunk,
            ..LibrarianRequest::default()
        };
        match self.ask(&question).await {
            Ok(begun) => Ok(begun.upload_id),
            Err(error) if error.code() == ErrorCode::Conflict => Ok(KNOWN.to_owned()),
            Err(error) => Err(fault::library(&error)),
        }
    }
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
        return Err(fault::field(
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
