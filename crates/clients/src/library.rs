//! The library: documents, their content, what is made of them, and uploads. The only file that knows the librarian's
//! operations.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use futures::{StreamExt, TryStreamExt, stream};
use tg_mesh::{Answer, Cx};
use tg_schemas::msg::{
    Criteria, DocumentMetadata, LibrarianRequest, LibrarianResponse, Metadata, ProcessingMetadata,
};
use tg_schemas::processors::{librarian, shared};
use tg_schemas::{Error, ErrorCode, Reply, limits};

use crate::caller::{Caller, goes_on};

/// Questions at a time to a librarian that cannot answer for many documents at once.
const AT_ONCE: usize = 8;
/// Entries of a page of a listing.
const PAGE: i64 = limits::PAGE_USUAL as i64;
/// Longest way from a chunk to its document: section, page, document, and as many more.
const LEVELS: usize = 6;

/// Encoders disagree about padding.
pub const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A part of a document to keep.
#[derive(Debug, Clone)]
pub struct Child {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Where it stands, to be read with it; may be empty.
    pub context: String,
    /// Its text.
    pub text: String,
}

/// What is to be done about parts that are kept.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    unchanged: HashSet<String>,
    readers: HashMap<String, Arc<BTreeMap<String, String>>>,
}

impl Kept {
    /// Who is to read a part, each with its fingerprint, all where there is none; `None`: nothing is to be done about it.
    pub fn readers(&self, id: &str) -> Option<BTreeMap<String, String>> {
        if self.unchanged.contains(id) {
            return None;
        }
        let readers = self.readers.get(id);
        Some(readers.map_or_else(BTreeMap::new, |readers| (**readers).clone()))
    }
}

/// A part of a document as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Its text.
    pub text: String,
    /// Where it stands; empty if that is not known.
    pub context: String,
}

impl Passage {
    fn alone(text: String) -> Self {
        Self {
            text,
            context: String::new(),
        }
    }
}

/// The library, as the work on one message sees it.
#[derive(Clone)]
pub struct Library {
    caller: Caller<LibrarianRequest, LibrarianResponse>,
    flow: String,
}

impl Library {
    /// The library that the flow names. Without one every question fails with `not-implemented`.
    pub fn of_flow(cx: &Cx) -> Self {
        Self {
            caller: Caller::of_flow(cx, shared::LIBRARIAN),
            flow: cx.flow().to_owned(),
        }
    }

    /// The library of the workspace, outside flows. Without a workspace every question fails with `bad-request`.
    pub fn of_workspace(cx: &Cx) -> Self {
        let workspace = cx.scope.workspace.as_ref();
        let topic = workspace.map(|workspace| librarian::LIBRARIAN.of_workspace(workspace));
        let topic =
            topic.ok_or_else(|| Error::new(ErrorCode::BadRequest, "workspace: is required"));
        Self {
            caller: Caller::within(cx, topic),
            flow: cx.flow().to_owned(),
        }
    }

    /// All questions from now on may take as long at most.
    pub fn at_most(mut self, patience: Duration) -> Self {
        self.caller = self.caller.at_most(patience);
        self
    }

    /// Each question may take as long, whatever is left of the message's own deadline.
    pub(crate) fn patient(mut self, patience: Duration) -> Self {
        self.caller = self.caller.patient(patience);
        self
    }

    async fn ask(&self, question: &LibrarianRequest) -> Result<LibrarianResponse, Error> {
        self.caller.last(question).await
    }

    /// What is known of a document.
    ///
    /// # Errors
    /// `not-found` if it is not there, and how the question failed.
    pub async fn describe(&self, id: &str) -> Result<DocumentMetadata, Error> {
        let known = self.ask(&about("get-document-metadata", id)).await?;
        let missing = || Error::new(ErrorCode::NotFound, "the document is not in the library");
        known.document_metadata.ok_or_else(missing)
    }

    /// What is known of a document; `None` if it is not there.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn find(&self, id: &str) -> Result<Option<DocumentMetadata>, Error> {
        match self.describe(id).await {
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            known => known.map(Some),
        }
    }

    /// What was made of a document, or of a part of one.
    ///
    /// # Errors
    /// How a question failed; one is asked for each page.
    pub async fn children(&self, id: &str) -> Result<Vec<DocumentMetadata>, Error> {
        let mut question = LibrarianRequest {
            limit: PAGE,
            ..about("list-children", id)
        };
        let mut children = Vec::new();
        loop {
            let page = self.ask(&question).await?;
            children.extend(page.document_metadatas);
            if !goes_on(&mut question.after, page.next) {
                return Ok(children);
            }
        }
    }

    /// The first parts of a document, or of a part of one: so many at most.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn first_children(
        &self,
        id: &str,
        most: usize,
    ) -> Result<Vec<DocumentMetadata>, Error> {
        let question = LibrarianRequest {
            limit: i64::try_from(most).unwrap_or(PAGE),
            ..about("list-children", id)
        };
        let mut found = self.ask(&question).await?.document_metadatas;
        found.truncate(most);
        Ok(found)
    }

    /// Documents that were processed into a collection: so many at most, behind the page that said `after`. Also what the page
    /// behind these is asked with; empty: there is none.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn documents(
        &self,
        collection: &str,
        after: &str,
        most: usize,
    ) -> Result<(Vec<DocumentMetadata>, String), Error> {
        let question = LibrarianRequest {
            operation: "list-documents".to_owned(),
            collection: collection.to_owned(),
            after: after.to_owned(),
            limit: i64::try_from(most).unwrap_or(PAGE),
            ..LibrarianRequest::default()
        };
        let page = self.ask(&question).await?;
        Ok((page.document_metadatas, page.next))
    }

    /// Whether a document was processed into a collection.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn is_in(&self, document: &str, collection: &str) -> Result<bool, Error> {
        let question = LibrarianRequest {
            operation: "list-documents".to_owned(),
            collection: collection.to_owned(),
            criteria: vec![Criteria {
                key: "id".to_owned(),
                value: document.to_owned(),
                operator: "eq".to_owned(),
            }],
            limit: 1,
            ..LibrarianRequest::default()
        };
        let found = self.ask(&question).await?.document_metadatas;
        Ok(found.iter().any(|one| one.id == document))
    }

    /// The document that a chunk is a part of, by the library's own records; one question per level.
    pub async fn document_of(&self, chunk: &str) -> Option<DocumentMetadata> {
        let mut id = chunk.to_owned();
        for _ in 0..LEVELS {
            let known = self.describe(&id).await.ok()?;
            if known.parent_id.is_empty() {
                return Some(DocumentMetadata { id, ..known });
            }
            id = known.parent_id;
        }
        None
    }

    /// The documents that chunks are parts of, in the order of the chunks; `None` where that is not known.
    pub async fn documents_of(&self, chunks: &[String]) -> Vec<Option<DocumentMetadata>> {
        let asks: Vec<_> = chunks.iter().map(|chunk| self.document_of(chunk)).collect();
        stream::iter(asks).buffered(AT_ONCE).collect().await
    }

    /// A document's content, in pieces of so many bytes.
    ///
    /// # Errors
    /// When there is no library to ask.
    pub fn stream(&self, id: &str, piece: usize) -> Result<Content, Error> {
        let question = LibrarianRequest {
            chunk_size: i64::try_from(piece).unwrap_or(i64::MAX),
            ..about("stream-document", id)
        };
        Ok(Content(Source::Library(self.caller.ask(&question)?)))
    }

    /// The texts of parts of documents with where they stand, in order and in one question where the librarian can do
    /// that; `None` where there is none.
    ///
    /// # Errors
    /// When the question is over or the library cannot be asked now. One document that cannot be read fails nothing.
    pub async fn texts(&self, ids: &[String]) -> Result<Vec<Option<Passage>>, Error> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        match self.at_once(ids).await {
            Err(error) if !error.code().is_over() && !error.code().is_transient() => {
                self.one_by_one(ids).await
            }
            texts => texts,
        }
    }

    async fn at_once(&self, ids: &[String]) -> Result<Vec<Option<Passage>>, Error> {
        let question = LibrarianRequest {
            operation: "get-contents".to_owned(),
            document_ids: ids.to_vec(),
            ..LibrarianRequest::default()
        };
        // A large answer may come in parts.
        let mut answer = self.caller.ask(&question)?;
        let mut texts = Vec::with_capacity(ids.len());
        let mut contexts = HashMap::new();
        while let Some(part) = answer.next().await {
            let part = part?;
            if let Some(error) = part.error {
                return Err(error);
            }
            texts.extend(part.contents.iter().map(|content| text(content)));
            let parts = part.document_metadatas.into_iter();
            let parts = parts.filter(|one| !one.parent_id.is_empty());
            contexts.extend(parts.map(|one| (one.id, one.comments)));
        }
        if texts.len() != ids.len() {
            let text = "the library answered for another number of documents";
            return Err(Error::new(ErrorCode::BadOperation, text));
        }
        let passages = ids.iter().zip(texts).map(|(id, text)| {
            let context = contexts.remove(id).unwrap_or_default();
            text.map(|text| Passage { text, context })
        });
        Ok(passages.collect())
    }

    async fn one_by_one(&self, ids: &[String]) -> Result<Vec<Option<Passage>>, Error> {
        let asks = ids.iter().map(|id| async move {
            match self.ask(&about("get-document-content", id)).await {
                Ok(answer) => Ok(text(&answer.content).map(Passage::alone)),
                Err(error) if error.code().is_over() => Err(error),
                Err(_) => Ok(None),
            }
        });
        let asks: Vec<_> = asks.collect();
        stream::iter(asks).buffered(AT_ONCE).try_collect().await
    }

    /// Puts a document that came by itself into the library. Its id: the one given, else one that follows from its
    /// content.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn ensure(&self, id: &str, kind: &str, content: &[u8]) -> Result<String, Error> {
        let question = LibrarianRequest {
            operation: "ensure-document".to_owned(),
            document_metadata: Some(DocumentMetadata {
                id: id.to_owned(),
                kind: kind.to_owned(),
                ..DocumentMetadata::default()
            }),
            content: BASE64.encode(content),
            ..LibrarianRequest::default()
        };
        Ok(self.ask(&question).await?.document_id)
    }

    /// Adds a document, or a part of its parent, with its content in base64. One that is there already stays as it
    /// is.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn add(&self, document: DocumentMetadata, content: String) -> Result<(), Error> {
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
        self.known(&question).await.map(drop)
    }

    /// Keeps parts of a document, as part of processing it in the flow. Returns the ids of those that are unchanged
    /// since an earlier, complete processing: nothing is to be done for them.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn add_children(
        &self,
        of: &Metadata,
        parent: &str,
        kind: &str,
        children: &[Child],
    ) -> Result<Kept, Error> {
        let child = |child: &Child| DocumentMetadata {
            id: child.id.clone(),
            kind: "text/plain".to_owned(),
            title: child.title.clone(),
            comments: child.context.clone(),
            parent_id: parent.to_owned(),
            document_type: kind.to_owned(),
            ..DocumentMetadata::default()
        };
        let contents = children.iter().map(|child| BASE64.encode(&child.text));
        let question = LibrarianRequest {
            operation: "add-children".to_owned(),
            document_id: of.root.clone(),
            collection: of.collection.clone(),
            processing_metadata: Some(ProcessingMetadata {
                document_id: of.root.clone(),
                flow: self.flow.clone(),
                collection: of.collection.clone(),
                ..ProcessingMetadata::default()
            }),
            document_metadatas: children.iter().map(child).collect(),
            contents: contents.collect(),
            hands_on_readers: true,
            ..LibrarianRequest::default()
        };
        let told = self.ask(&question).await?;
        let unchanged = told.document_metadatas.into_iter().map(|child| child.id);
        let mut kept = Kept {
            unchanged: unchanged.collect(),
            readers: HashMap::new(),
        };
        for of in told.readers {
            let readers = Arc::new(of.readers);
            let chunks = of.chunks.into_iter();
            kept.readers.extend(chunks.map(|id| (id, readers.clone())));
        }
        Ok(kept)
    }

    /// Begins to upload a document of so many bytes in parts of one size, but for the last. Returns the upload's id;
    /// `None` if the library has the document already.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn begin_upload(
        &self,
        document: DocumentMetadata,
        total: i64,
        part: i64,
    ) -> Result<Option<String>, Error> {
        let question = LibrarianRequest {
            document_metadata: Some(document),
            total_size: total,
            chunk_size: part,
            ..upload("begin-upload", "")
        };
        let begun = self.known(&question).await?;
        Ok(begun.map(|begun| begun.upload_id))
    }

    /// Uploads a part, in base64. The same part again changes nothing.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn upload_part(&self, id: &str, part: i64, content: String) -> Result<(), Error> {
        let question = LibrarianRequest {
            chunk_index: part,
            content,
            ..upload("upload-chunk", id)
        };
        self.ask(&question).await.map(drop)
    }

    /// Makes the parts the document.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn complete_upload(&self, id: &str) -> Result<(), Error> {
        self.known(&upload("complete-upload", id)).await.map(drop)
    }

    /// Gives an upload up.
    ///
    /// # Errors
    /// How the question failed. An upload that nobody goes on with is gone by itself in a day.
    pub async fn abort_upload(&self, id: &str) -> Result<(), Error> {
        self.ask(&upload("abort-upload", id)).await.map(drop)
    }

    /// `None` if it is there already: the same question may have been answered before.
    async fn known(&self, ask: &LibrarianRequest) -> Result<Option<LibrarianResponse>, Error> {
        match self.ask(ask).await {
            Err(error) if error.code() == ErrorCode::Conflict => Ok(None),
            answer => answer.map(Some),
        }
    }
}

/// A foreign librarian looks for the id in the metadata.
fn about(operation: &str, document: &str) -> LibrarianRequest {
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

fn upload(operation: &str, id: &str) -> LibrarianRequest {
    LibrarianRequest {
        operation: operation.to_owned(),
        upload_id: id.to_owned(),
        ..LibrarianRequest::default()
    }
}

fn text(content: &str) -> Option<String> {
    let bytes = BASE64.decode(content.trim()).ok()?;
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// Content in pieces.
pub struct Content(Source);

enum Source {
    Library(Answer<LibrarianResponse>),
    Here(Option<Vec<u8>>),
}

/// A piece of content as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The piece, in base64.
    pub base64: String,
    /// Bytes of the whole document; 0 if unknown.
    pub total: i64,
}

impl Content {
    /// Content that is here already.
    pub fn here(content: Vec<u8>) -> Self {
        Self(Source::Here(Some(content)))
    }

    /// The next piece.
    ///
    /// # Errors
    /// How the question failed, and `internal` for a piece that cannot be read.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        if let Source::Here(content) = &mut self.0 {
            return Ok(content.take());
        }
        let Some(piece) = self.next_piece().await? else {
            return Ok(None);
        };
        let decoded = BASE64.decode(&piece.base64);
        decoded
            .map(Some)
            .map_err(|_| Error::new(ErrorCode::Internal, "the library sent an unreadable answer"))
    }

    /// The next piece, in base64.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn next_piece(&mut self) -> Result<Option<Piece>, Error> {
        let answer = match &mut self.0 {
            Source::Here(content) => {
                return Ok(content.take().map(|content| Piece {
                    total: i64::try_from(content.len()).unwrap_or(i64::MAX),
                    base64: BASE64.encode(content),
                }));
            }
            Source::Library(answer) => answer,
        };
        let Some(part) = answer.next().await else {
            return Ok(None);
        };
        let part = part?;
        if let Some(error) = part.error() {
            return Err(error.clone());
        }
        Ok(Some(Piece {
            base64: part.content,
            total: part.total_bytes,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_with_or_without_padding() {
        for content in ["aGVsbG8=", "aGVsbG8", " aGVsbG8=\n"] {
            assert_eq!(text(content).as_deref(), Some("hello"));
        }
        assert_eq!(text(""), None);
        assert_eq!(text("%"), None);
    }
}
