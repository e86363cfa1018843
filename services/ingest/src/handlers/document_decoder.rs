//! `document-decoder`: a document comes in, in the record or by its name; its pages or sections go on.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use tg_clients::library::{BASE64, Content, Library};
use tg_document::kind;
use tg_mesh::{ConsumeError, Cx, RecordConsumer, clock};
use tg_runs::RunContext;
use tg_schemas::limits::STREAM_PIECE;
use tg_schemas::msg::{Document, DocumentMetadata};

use crate::child::Children;
use crate::error::{IngestError, Unreadable};
use crate::parts::Parts;
use crate::source::{About, keep};
use crate::take_apart::TakeApart;

/// Reads `input` of the decoder.
pub(crate) struct Decoder {
    children: Arc<Children>,
}

impl Decoder {
    pub(crate) fn new(children: Arc<Children>) -> Arc<Self> {
        Arc::new(Self { children })
    }
}

#[async_trait]
impl RecordConsumer<Document> for Decoder {
    async fn consume(&self, cx: Cx, record: Document) -> Result<(), ConsumeError> {
        let about = About::new(record.metadata, &record.document_id);
        if !cx.is_current(&about.metadata.collection) {
            return Ok(());
        }
        let (about, known, pieces) = match record.data.is_empty() {
            true => named(&cx, about).await?,
            false => brought(&cx, about, &record.data).await?,
        };
        cx.subject(&about.id);
        let started_at = clock::rfc3339();
        let mut parts = Parts::new(&cx, &about, &known.title, &started_at);
        let document = TakeApart {
            children: &self.children,
            workspace: cx.workspace(),
            about: &about,
            pieces,
            head: Vec::new(),
        };
        Ok(document.run(&known.kind, &mut parts).await?)
    }
}

/// The document that a record names, what is known of it, and its content in the library.
async fn named(cx: &Cx, about: About) -> Result<(About, DocumentMetadata, Content), IngestError> {
    if about.id.is_empty() {
        return Err(IngestError::Unnamed("data"));
    }
    let library = Library::of_flow(cx);
    let fault = |error| IngestError::asked(&about.id, error);
    let known = library.describe(&about.id).await.map_err(fault)?;
    let pieces = library.stream(&about.id, STREAM_PIECE).map_err(fault)?;
    Ok((about, known, pieces))
}

/// The document that a record brings, kept in the library.
async fn brought(
    cx: &Cx,
    about: About,
    data: &str,
) -> Result<(About, DocumentMetadata, Content), IngestError> {
    let content = BASE64.decode(data);
    let not_base64 = |_| IngestError::unreadable(&about.id, Unreadable::NotBase64);
    let content = content.map_err(not_base64)?;
    let kind = mime(&content);
    let about = keep(cx, about, &kind, &content).await?;
    let known = DocumentMetadata {
        kind,
        ..DocumentMetadata::default()
    };
    Ok((about, known, Content::here(content)))
}

/// MIME type of content that came without one.
fn mime(content: &[u8]) -> String {
    let head = &content[..content.len().min(kind::HEAD)];
    kind::detect(head, "").map_or_else(
        |_| "application/octet-stream".to_owned(),
        |kind| kind.mime(""),
    )
}
