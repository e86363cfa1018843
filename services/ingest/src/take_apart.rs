//! Documents of any kind to pages or sections of text.

use tg_clients::library::Content;
use tg_document::kind::{self, Kind, MARKDOWN};
use tg_document::text::{TextDecoder, tidy};

use crate::child::Children;
use crate::decode::{DecodeError, Format, Frame};
use crate::engine::outline::{Outline, Start};
use crate::engine::structure::Structure;
use crate::engine::window::Windows;
use crate::error::{IngestError, Unreadable};
use crate::parts::{SECTION, TakesParts};
use crate::source::{About, TextOrigin};

/// One document on its way.
pub(crate) struct TakeApart<'a> {
    pub(crate) children: &'a Children,
    pub(crate) workspace: &'a str,
    pub(crate) about: &'a About,
    pub(crate) pieces: Content,
    /// What was read to see what it is.
    pub(crate) head: Vec<u8>,
}

impl TakeApart<'_> {
    /// Reads the document, as what its first bytes and then `declared` say it is.
    pub(crate) async fn run(
        mut self,
        declared: &str,
        parts: &mut impl TakesParts,
    ) -> Result<(), IngestError> {
        let head = self.head().await?;
        let kind = kind::detect(head, declared);
        match kind.map_err(|why| IngestError::unreadable(&self.about.id, why))? {
            Kind::Pdf => self.child(Format::Pdf, parts).await,
            Kind::Html => self.child(Format::Html, parts).await,
            Kind::Docx => self.child(Format::Docx, parts).await,
            kind @ Kind::Text => self.text(kind.mime(declared), parts).await,
        }
    }

    async fn next(&mut self) -> Result<Option<Vec<u8>>, IngestError> {
        let next = self.pieces.next().await;
        next.map_err(|error| IngestError::asked(&self.about.id, error))
    }

    /// Reads enough to see what it is.
    async fn head(&mut self) -> Result<&[u8], IngestError> {
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
    async fn text(&mut self, kind: String, parts: &mut impl TakesParts) -> Result<(), IngestError> {
        let refuse = |why| IngestError::unreadable(&self.about.id, why);
        let mut windows = Windows::new(SECTION);
        let mut following = Following::new(kind, parts.start());
        let mut decoder = TextDecoder::default();
        let mut piece = Some(std::mem::take(&mut self.head));
        let mut text = String::new();
        while let Some(bytes) = piece {
            decoder.push(&bytes, &mut text).map_err(refuse)?;
            windows.text().push_str(&text);
            text.clear();
            while let Some(window) = windows.full() {
                following.section(parts, tidy(&window)).await?;
            }
            if parts.has_enough() {
                return Ok(());
            }
            piece = self
                .pieces
                .next()
                .await
                .map_err(|error| IngestError::asked(&self.about.id, error))?;
        }
        decoder.finish(windows.text()).map_err(refuse)?;
        let last = tidy(&windows.last());
        following.section(parts, last).await?;
        if parts.is_empty() {
            return Err(IngestError::unreadable(&self.about.id, Unreadable::NoText));
        }
        parts.finish().await
    }

    /// What only a child may take apart.
    async fn child(
        &mut self,
        format: Format,
        parts: &mut impl TakesParts,
    ) -> Result<(), IngestError> {
        let started = self.children.start(self.workspace, format).await;
        let mut feeding = started?;
        let mut piece = Some(std::mem::take(&mut self.head));
        while let Some(bytes) = piece {
            feeding.feed(&bytes).await;
            piece = self.next().await?;
        }
        let mut telling = feeding.fed();
        let mut windows = Windows::new(SECTION);
        // What a child says of a document without pages is Markdown.
        let mut following = Following::new(MARKDOWN.to_owned(), parts.start());
        let (mut bad, mut partly) = (Vec::new(), Vec::new());
        let fault = loop {
            match telling.next().await {
                Frame::Page(number, text) => parts.page(number, text).await?,
                Frame::BadPage(number) => bad.push(number),
                Frame::PartlyPage(number) => partly.push(number),
                Frame::Text(text) => {
                    windows.text().push_str(&text);
                    while let Some(window) = windows.full() {
                        following.section(parts, window).await?;
                    }
                }
                Frame::End => break None,
                Frame::Error(fault) => break Some(fault),
            }
        };
        drop(telling);
        if fault.is_none() {
            following.section(parts, windows.last()).await?;
        }
        // What could be read goes on, also of a document that is refused in the end.
        parts.finish().await?;
        let why = match fault {
            Some(DecodeError::Died) => Unreadable::Killed {
                decoder: format,
                after: parts.last_page(),
            },
            Some(DecodeError::TooSlow) if !parts.is_empty() => Unreadable::After(parts.last_page()),
            Some(fault) => fault.into(),
            None if bad.is_empty() && partly.is_empty() => return Ok(()),
            None => Unreadable::Pages { bad, partly },
        };
        Err(IngestError::unreadable(&self.about.id, why))
    }
}

/// Follows a text from section to section, so that each knows below what it begins.
struct Following {
    kind: String,
    outline: Outline,
}

impl Following {
    fn new(kind: String, start: Start) -> Self {
        let outline = Outline::new(Structure::of(&kind), start);
        Self { kind, outline }
    }

    async fn section(
        &mut self,
        parts: &mut impl TakesParts,
        text: String,
    ) -> Result<(), IngestError> {
        let place = TextOrigin {
            kind: self.kind.clone(),
            start: self.outline.here(),
        };
        self.outline.pass(&text);
        parts.section(text, place).await
    }
}
