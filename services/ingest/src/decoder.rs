//! The decoder: documents of any kind to pages or sections of text.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use tg_clients::library::{BASE64, Content, Library};
use tg_mesh::{ConsumeError, Cx, RecordConsumer};
use tg_runs::RunContext;
use tg_schemas::limits::STREAM_PIECE;
use tg_schemas::msg::Document;
use tg_schemas::{Error, ErrorCode};

use crate::child::Children;
use crate::decode::{Fault, Format, Frame};
use crate::engine::kind::{self, Kind};
use crate::engine::text::{TextDecoder, tidy};
use crate::engine::window::Windows;
use crate::fault::{met, refused};
use crate::now;
use crate::options::Options;
use crate::parts::{Parts, SECTION};
use crate::source::{About, keep};

/// Most bad pages that an error names.
const NAMED: usize = 20;

/// Reads `input` of the decoder.
pub(crate) struct Decoder {
    children: Children,
}

impl Decoder {
    pub(crate) fn new(settings: Options) -> Arc<Self> {
        Arc::new(Self {
            children: Children::new(settings),
        })
    }
}

#[async_trait]
impl RecordConsumer<Document> for Decoder {
    async fn consume(&self, cx: Cx, record: Document) -> Result<(), ConsumeError> {
        let about = About::new(record.metadata, &record.document_id);
        if !cx.is_current(&about.metadata.collection) {
            return Ok(());
        }
        let by_itself = !record.data.is_empty();
        let (about, declared, mut pieces) = if by_itself {
            let content = BASE64.decode(&record.data);
            let content = content.map_err(|_| refused(&about.id, "is not base64"))?;
            let kind = mime(&content);
            let about = keep(&cx, about, kind, &content).await?;
            (about, kind.to_owned(), Content::here(content))
        } else if about.id.is_empty() {
            let why = "data: is required where no document is named";
            return Err(ConsumeError::Dead(Error::new(ErrorCode::BadRequest, why)));
        } else {
            let library = Library::of_flow(&cx);
            let fault = |error| met(&about.id, error);
            let known = library.describe(&about.id).await.map_err(fault)?;
            let pieces = library.stream(&about.id, STREAM_PIECE).map_err(fault)?;
            (about, known.kind, pieces)
        };
        cx.subject(&about.id);
        let mut work = Work {
            children: &self.children,
            workspace: cx.workspace(),
            about: &about,
            pieces: &mut pieces,
            head: Vec::new(),
        };
        let started_at = now();
        let mut parts = Parts::new(&cx, &about, &started_at);
        let head = work.head().await?;
        match kind::detect(head, &declared).map_err(|why| refused(&about.id, why))? {
            Kind::Pdf => work.child(Format::Pdf, &mut parts).await,
            Kind::Html => work.child(Format::Html, &mut parts).await,
            Kind::Docx => work.child(Format::Docx, &mut parts).await,
            Kind::Text => work.text(&mut parts).await,
        }
    }
}

/// MIME type of content that came without one.
fn mime(content: &[u8]) -> &'static str {
    let head = &content[..content.len().min(kind::HEAD)];
    match kind::detect(head, "") {
        Ok(Kind::Pdf) => "application/pdf",
        Ok(Kind::Html) => "text/html",
        Ok(Kind::Docx) => kind::DOCX,
        Ok(Kind::Text) => "text/plain",
        Err(_) => "application/octet-stream",
    }
}

/// One document on its way.
struct Work<'a> {
    children: &'a Children,
    workspace: &'a str,
    about: &'a About,
    pieces: &'a mut Content,
    /// What was read to see what it is.
    head: Vec<u8>,
}

impl Work<'_> {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, ConsumeError> {
        let next = self.pieces.next().await;
        next.map_err(|error| met(&self.about.id, error))
    }

    /// Reads enough to see what it is.
    async fn head(&mut self) -> Result<&[u8], ConsumeError> {
        while self.head.len() < kind::HEAD {
            match self.next().await? {
                Some(piece) if self.head.is_empty() => self.head = piece,
                Some(piece) => self.head.extend_from_slice(&piece),
                None => break,
            }
        }
        Ok(&self.head[..self.head.len().min(kind::HEAD)])
    }

    /// Text as it is, window by window.
    async fn text(&mut self, parts: &mut Parts<'_>) -> Result<(), ConsumeError> {
        let refuse = |why| refused(&self.about.id, why);
        let mut windows = Windows::new(SECTION);
        let mut decoder = TextDecoder::default();
        let mut piece = Some(std::mem::take(&mut self.head));
        let mut text = String::new();
        while let Some(bytes) = piece {
            decoder.push(&bytes, &mut text).map_err(refuse)?;
            windows.text().push_str(&text);
            text.clear();
            while let Some(window) = windows.full() {
                parts.section(tidy(&window)).await?;
            }
            piece = self
                .pieces
                .next()
                .await
                .map_err(|error| met(&self.about.id, error))?;
        }
        decoder.finish(windows.text()).map_err(refuse)?;
        parts.section(tidy(&windows.last())).await?;
        if parts.is_empty() {
            return Err(refused(&self.about.id, "has no text"));
        }
        parts.finish().await
    }

    /// What only a child may take apart.
    async fn child(&mut self, format: Format, parts: &mut Parts<'_>) -> Result<(), ConsumeError> {
        let started = self.children.start(self.workspace, format).await;
        let mut feeding = started.map_err(|error| met(&self.about.id, error))?;
        let mut piece = Some(std::mem::take(&mut self.head));
        while let Some(bytes) = piece {
            feeding.feed(&bytes).await;
            piece = self.next().await?;
        }
        let mut telling = feeding.fed();
        let mut windows = Windows::new(SECTION);
        let mut bad = Vec::new();
        let fault = loop {
            match telling.next().await {
                Frame::Page(number, text) => parts.page(number, text).await?,
                Frame::BadPage(number) => bad.push(number),
                Frame::Text(text) => {
                    windows.text().push_str(&text);
                    while let Some(window) = windows.full() {
                        parts.section(window).await?;
                    }
                }
                Frame::End => break None,
                Frame::Fault(fault) => break Some(fault),
            }
        };
        drop(telling);
        if fault.is_none() {
            parts.section(windows.last()).await?;
        }
        // What could be read goes on, also of a document that is refused in the end.
        parts.finish().await?;
        match (fault, bad.is_empty()) {
            (Some(Fault::TooSlow | Fault::Died), _) if !parts.is_empty() => Err(refused(
                &self.about.id,
                format!("could be read only up to page {}", parts.last_page()),
            )),
            (Some(fault), _) => Err(refused(&self.about.id, fault)),
            (None, true) => Ok(()),
            (None, false) => Err(refused(&self.about.id, bad_pages(&bad))),
        }
    }
}

fn bad_pages(bad: &[u32]) -> String {
    let named: Vec<String> = bad.iter().take(NAMED).map(u32::to_string).collect();
    let more = match bad.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "has pages that cannot be read: {}{more}; the others were processed",
        named.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_pages_are_named_up_to_a_bound() {
        assert!(bad_pages(&[3, 7]).contains(": 3, 7;"));
        let many: Vec<u32> = (1..=50).collect();
        assert!(bad_pages(&many).contains("19, 20 and 30 more;"));
    }
}
