//! Pages and sections of one document on their way: kept in the library, described in the graph and handed to
//! the chunker, a batch at a time.

use std::collections::HashMap;

use tg_clients::library::{Child, Library};
use tg_mesh::Cx;
use tg_provenance::{
    Kind, Making, PartFacts, PartKind, part, part_alone, section_id, stable_id, text_hash,
};
use tg_runs::RunContext;
use tg_schemas::msg::{TextDocument, Triples};
use tg_schemas::processors::document_decoder;

use crate::engine::outline::Start;
use crate::error::IngestError;
use crate::source::{About, TextOrigin};

/// Longest section in bytes.
pub(crate) const SECTION: usize = 1 << 20;

/// Name in provenance, and the version of what it does.
const COMPONENT: &str = "document-decoder";
const VERSION: &str = "1.0.0";
/// Parts of one batch.
const BATCH: usize = 100;
/// Bytes of one batch.
const BATCH_BYTES: usize = 1 << 20;
/// Text up to this size travels in the record; longer text is read from the library.
const INLINE: usize = 64 << 10;

struct Part {
    child: Child,
    /// 0 for a section.
    page: u32,
    place: TextOrigin,
}

/// Takes the pages or sections of a document, in order.
pub(crate) trait TakesParts {
    /// Where the document begins.
    fn start(&self) -> Start;
    /// Whether no part had text.
    fn is_empty(&self) -> bool;
    /// The last page that could be read.
    fn last_page(&self) -> u32;
    /// Whether it wants no more of a text.
    fn has_enough(&self) -> bool {
        false
    }
    /// A page. One without text is passed over.
    async fn page(&mut self, number: u32, text: String) -> Result<(), IngestError>;
    /// A section, and where it begins. One without text is passed over.
    async fn section(&mut self, text: String, place: TextOrigin) -> Result<(), IngestError>;
    /// Lets go what is left.
    async fn finish(&mut self) -> Result<(), IngestError>;
}

/// Where a page begins.
pub(crate) fn of_page(start: Start, number: u32) -> TextOrigin {
    TextOrigin {
        kind: String::new(),
        start: Start {
            page: i64::from(number),
            ..start
        },
    }
}

/// Collects parts and lets them go in batches.
pub(crate) struct Parts<'a> {
    cx: &'a Cx,
    about: &'a About,
    started_at: &'a str,
    /// Title of the document.
    title: &'a str,
    batch: Vec<Part>,
    bytes: usize,
    /// Parts so far.
    count: usize,
    /// How often a page's text was there, by its hash.
    seen: HashMap<String, usize>,
    last_page: u32,
}

impl<'a> Parts<'a> {
    pub(crate) fn new(cx: &'a Cx, about: &'a About, title: &'a str, started_at: &'a str) -> Self {
        Self {
            cx,
            about,
            started_at,
            title,
            batch: Vec::new(),
            bytes: 0,
            count: 0,
            seen: HashMap::new(),
            last_page: 0,
        }
    }
}

impl TakesParts for Parts<'_> {
    fn start(&self) -> Start {
        Start {
            title: self.title.to_owned(),
            ..Start::default()
        }
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn last_page(&self) -> u32 {
        self.last_page
    }

    async fn page(&mut self, number: u32, text: String) -> Result<(), IngestError> {
        self.last_page = number;
        if text.trim().is_empty() {
            return Ok(());
        }
        let hash = text_hash(&text);
        let seen = self.seen.entry(hash.clone()).or_default();
        let parts = [&self.about.metadata.root, &hash, &seen.to_string()];
        let id = stable_id(Kind::Page, &parts.map(String::as_str));
        *seen += 1;
        let place = of_page(self.start(), number);
        let title = format!("Page {number}");
        self.push(id, title, text, number, place).await
    }

    async fn section(&mut self, text: String, place: TextOrigin) -> Result<(), IngestError> {
        if text.trim().is_empty() {
            return Ok(());
        }
        let number = self.count + 1;
        let id = section_id(&self.about.metadata.root, number);
        let title = format!("Section {number}");
        self.push(id, title, text, 0, place).await
    }

    async fn finish(&mut self) -> Result<(), IngestError> {
        let batch = std::mem::take(&mut self.batch);
        self.bytes = 0;
        for kind in [PartKind::Page, PartKind::Section] {
            let of_kind = |part: &&Part| (part.page > 0) == (kind == PartKind::Page);
            let parts: Vec<&Part> = batch.iter().filter(of_kind).collect();
            if !parts.is_empty() {
                self.send(kind, &parts).await?;
            }
        }
        Ok(())
    }
}

impl Parts<'_> {
    async fn push(
        &mut self,
        id: String,
        title: String,
        text: String,
        page: u32,
        place: TextOrigin,
    ) -> Result<(), IngestError> {
        self.count += 1;
        self.bytes += text.len();
        let child = Child {
            id,
            title,
            text,
            context: String::new(),
        };
        self.batch.push(Part { child, page, place });
        if self.batch.len() >= BATCH || self.bytes >= BATCH_BYTES {
            self.finish().await?;
        }
        Ok(())
    }

    async fn send(&self, kind: PartKind, parts: &[&Part]) -> Result<(), IngestError> {
        let fault = |error| IngestError::asked(&self.about.metadata.root, error);
        let children: Vec<Child> = parts.iter().map(|part| part.child.clone()).collect();
        let library = Library::of_flow(self.cx);
        let word = match kind {
            PartKind::Page => "page",
            _ => "section",
        };
        // The chunker is told of unchanged parts too: it may be set otherwise than it was.
        let added = library.add_children(&self.about.metadata, &self.about.id, word, &children);
        added.await.map_err(fault)?;
        let described = self.describe(kind, parts);
        let written = self.cx.record(document_decoder::TRIPLES, &described).await;
        written.map_err(fault)?;
        self.cx.effect("triples", described.triples.len() as i64);
        let effect = if kind == PartKind::Page {
            "pages"
        } else {
            "sections"
        };
        self.cx
            .effect(effect, i64::try_from(children.len()).unwrap_or(i64::MAX));
        for (child, part) in children.into_iter().zip(parts) {
            let Start {
                title,
                headings,
                table,
                page,
            } = part.place.start.clone();
            let record = TextDocument {
                metadata: Some(self.about.part(&child.id)),
                text: match child.text.len() <= INLINE {
                    true => child.text,
                    false => String::new(),
                },
                document_id: child.id,
                title,
                kind: part.place.kind.clone(),
                headings,
                table,
                page,
            };
            let written = self.cx.record(document_decoder::OUTPUT, &record).await;
            written.map_err(fault)?;
        }
        Ok(())
    }

    fn describe(&self, kind: PartKind, parts: &[&Part]) -> Triples {
        let making = Making {
            component: COMPONENT,
            version: VERSION,
            started_at: self.started_at,
        };
        let mut triples = Vec::with_capacity(parts.len() * 8 + 10);
        for Part { child, page, .. } in parts {
            let facts = PartFacts {
                label: Some(&child.title),
                page_number: (*page > 0).then_some(u64::from(*page)),
                char_length: Some(child.text.chars().count() as u64),
                ..PartFacts::new(&child.id, kind, &self.about.id)
            };
            triples.extend(match triples.is_empty() {
                true => part(&facts, &making),
                false => part_alone(&facts, &making),
            });
        }
        Triples {
            metadata: Some(self.about.metadata.clone()),
            triples,
        }
    }
}
