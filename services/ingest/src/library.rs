//! What ingestion asks of the library: documents in pieces, children in batches. The only file that knows the
//! librarian's operations.

use std::collections::HashSet;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use tg_mesh::{Answer, Cx};
use tg_schemas::msg::{
    DocumentMetadata, LibrarianRequest, LibrarianResponse, Metadata, ProcessingMetadata,
};
use tg_schemas::{Error, ErrorCode, Reply};

/// Bytes of a piece.
const PIECE: i64 = tg_schemas::limits::STREAM_PIECE as i64;
const SPEC: &str = "librarian-request";

/// Encoders disagree about padding.
pub(crate) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A part of a document to keep.
#[derive(Debug, Clone)]
pub(crate) struct Child {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) text: String,
}

/// The library, as one record's handler sees it.
pub(crate) struct Library<'a> {
    pub(crate) cx: &'a Cx,
}

impl Library<'_> {
    async fn ask(&self, ask: &LibrarianRequest) -> Result<LibrarianResponse, Error> {
        let answer = self.cx.ask::<_, LibrarianResponse>(SPEC, ask)?;
        answer.last().await
    }

    /// What is known of a document.
    pub(crate) async fn describe(&self, id: &str) -> Result<DocumentMetadata, Error> {
        let ask = LibrarianRequest {
            operation: "get-document-metadata".to_owned(),
            document_id: id.to_owned(),
            ..LibrarianRequest::default()
        };
        let known = self.ask(&ask).await?.document_metadata;
        known.ok_or_else(|| Error::new(ErrorCode::NotFound, "the document is not in the library"))
    }

    /// A document's content, in pieces.
    pub(crate) fn read(&self, id: &str) -> Result<Pieces, Error> {
        let ask = LibrarianRequest {
            operation: "stream-document".to_owned(),
            document_id: id.to_owned(),
            chunk_size: PIECE,
            ..LibrarianRequest::default()
        };
        Ok(Pieces(Source::Library(self.cx.ask(SPEC, &ask)?)))
    }

    /// Puts a document that came by itself into the library. Its id: the one given, else one that follows
    /// from its content.
    pub(crate) async fn ensure(
        &self,
        id: &str,
        kind: &str,
        content: String,
    ) -> Result<String, Error> {
        let ask = LibrarianRequest {
            operation: "ensure-document".to_owned(),
            document_metadata: Some(DocumentMetadata {
                id: id.to_owned(),
                kind: kind.to_owned(),
                ..DocumentMetadata::default()
            }),
            content,
            ..LibrarianRequest::default()
        };
        Ok(self.ask(&ask).await?.document_id)
    }

    /// Keeps parts of a document. Returns the ids of those that are unchanged since an earlier, complete
    /// processing: nothing is to be done for them.
    pub(crate) async fn add(
        &self,
        of: &Metadata,
        parent: &str,
        kind: &str,
        children: &[Child],
    ) -> Result<HashSet<String>, Error> {
        let child = |child: &Child| DocumentMetadata {
            id: child.id.clone(),
            kind: "text/plain".to_owned(),
            title: child.title.clone(),
            parent_id: parent.to_owned(),
            document_type: kind.to_owned(),
            ..DocumentMetadata::default()
        };
        let contents = children.iter().map(|child| BASE64.encode(&child.text));
        let ask = LibrarianRequest {
            operation: "add-children".to_owned(),
            document_id: of.root.clone(),
            collection: of.collection.clone(),
            processing_metadata: Some(ProcessingMetadata {
                document_id: of.root.clone(),
                flow: self.cx.flow().to_owned(),
                collection: of.collection.clone(),
                ..ProcessingMetadata::default()
            }),
            document_metadatas: children.iter().map(child).collect(),
            contents: contents.collect(),
            ..LibrarianRequest::default()
        };
        let unchanged = self.ask(&ask).await?.document_metadatas;
        Ok(unchanged.into_iter().map(|child| child.id).collect())
    }
}

/// Content in pieces.
pub(crate) struct Pieces(Source);

enum Source {
    Library(Answer<LibrarianResponse>),
    Here(Option<Vec<u8>>),
}

impl Pieces {
    /// Content that came with the record.
    pub(crate) fn here(content: Vec<u8>) -> Self {
        Self(Source::Here(Some(content)))
    }

    /// The next piece.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let answer = match &mut self.0 {
            Source::Here(content) => return Ok(content.take()),
            Source::Library(answer) => answer,
        };
        let Some(part) = answer.next().await else {
            return Ok(None);
        };
        let part = part?;
        if let Some(error) = part.error() {
            return Err(error.clone());
        }
        let decoded = BASE64.decode(&part.content);
        decoded
            .map(Some)
            .map_err(|_| Error::new(ErrorCode::Internal, "the library sent what cannot be read"))
    }
}
