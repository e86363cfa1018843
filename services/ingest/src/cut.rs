//! Text to chunks, each kept in the library, described in the graph and handed to extractors.

use futures::{StreamExt, TryStreamExt, stream};
use tg_clients::library::{Child, Library};
use tg_mesh::Cx;
use tg_provenance::{Making, PartFacts, PartKind, part, part_alone};
use tg_runs::RunContext;
use tg_schemas::Error;
use tg_schemas::limits::STREAM_PIECE;
use tg_schemas::msg::{Chunk, Triples};
use tg_schemas::processors::chunker;

use crate::engine::chunks::{Cutting, Named, Naming};
use crate::engine::outline::Outline;
use crate::engine::recursive::Slice;
use crate::engine::structure::Structure;
use crate::error::{IngestError, Unreadable, unfinished};
use crate::source::{About, TextOrigin};
use crate::texts::Texts;

/// Name in provenance, and the version of what it does.
const COMPONENT: &str = "chunker";
const VERSION: &str = "1.0.0";
/// Text that is cut without leaving the thread.
const SHORT: usize = 16 << 10;
/// Chunks of one batch: one question to the library, one record of provenance.
const BATCH: usize = 100;
/// Characters of one batch.
const BATCH_LENGTH: u64 = 1 << 20;
/// Chunk records on their way at once.
const AT_ONCE: usize = 16;

/// One text on its way.
pub(crate) struct Cut<'a> {
    cx: &'a Cx,
    about: &'a About,
    cutting: Cutting,
    structure: Structure,
    outline: Outline,
    naming: Naming,
    started_at: &'a str,
    batch: Vec<(Named, String)>,
    /// Characters in the batch.
    length: u64,
    /// Whether there was a chunk at all.
    some: bool,
}

impl<'a> Cut<'a> {
    /// `place`: where the text begins, and its kind.
    pub(crate) fn new(
        cx: &'a Cx,
        about: &'a About,
        cutting: Cutting,
        place: TextOrigin,
        started_at: &'a str,
    ) -> Self {
        let structure = Structure::of(&place.kind);
        Self {
            cx,
            about,
            cutting,
            structure,
            outline: Outline::new(structure, place.start),
            naming: Naming::of(&about.id),
            started_at,
            batch: Vec::new(),
            length: 0,
            some: false,
        }
    }

    fn fault(&self, error: Error) -> IngestError {
        IngestError::asked(&self.about.metadata.root, error)
    }

    /// Text from the library, window by window.
    pub(crate) async fn library(&mut self) -> Result<(), IngestError> {
        let root = &self.about.metadata.root;
        let library = Library::of_flow(self.cx);
        let content = library.stream(&self.about.id, STREAM_PIECE);
        let mut texts = Texts::new(root, content.map_err(|error| self.fault(error))?);
        while let Some(window) = texts.next().await? {
            self.window(&window).await?;
        }
        Ok(())
    }

    /// Lets go what is left. Blank text is told like none, or its document would be complete and never found.
    pub(crate) async fn finish(&mut self) -> Result<(), IngestError> {
        match self.some {
            true => self.flush().await,
            false => Err(IngestError::unreadable(
                &self.about.metadata.root,
                Unreadable::NoText,
            )),
        }
    }

    /// A piece of text that ends where it may be cut.
    pub(crate) async fn window(&mut self, text: &str) -> Result<(), IngestError> {
        let (slices, contexts) = self.slices(text).await?;
        for (slices, contexts) in slices.chunks(BATCH).zip(contexts.chunks(BATCH)) {
            // Batches go on over windows, and end where they are full.
            let named: Vec<Named> = self.naming.window(text, slices).collect();
            for (chunk, context) in named.into_iter().zip(contexts) {
                self.some = true;
                self.length += chunk.length;
                self.batch.push((chunk, context.clone()));
                if self.batch.len() >= BATCH || self.length >= BATCH_LENGTH {
                    self.flush().await?;
                }
            }
        }
        self.naming.passed(text);
        Ok(())
    }

    async fn slices(&mut self, text: &str) -> Result<(Vec<Slice>, Vec<String>), IngestError> {
        slices(self.cutting, self.structure, &mut self.outline, text).await
    }

    /// Keeps, describes and hands on what is in the batch.
    async fn flush(&mut self) -> Result<(), IngestError> {
        let batch = std::mem::take(&mut self.batch);
        self.length = 0;
        if batch.is_empty() {
            return Ok(());
        }
        let children: Vec<Child> = batch
            .iter()
            .map(|(chunk, context)| Child {
                id: chunk.id.clone(),
                title: format!("Chunk {}", chunk.index),
                context: context.clone(),
                text: chunk.text.clone(),
            })
            .collect();
        let library = Library::of_flow(self.cx);
        let (about, id) = (&self.about.metadata, &self.about.id);
        let added = library.add_children(about, id, "chunk", &children);
        let kept = added.await.map_err(|error| self.fault(error))?;
        let described = self.describe(&batch);
        let written = self.cx.record(chunker::TRIPLES, &described).await;
        written.map_err(|error| self.fault(error))?;
        self.cx.effect("triples", count(described.triples.len()));
        self.cx.effect("chunks", count(batch.len()));
        let (cx, about) = (self.cx, self.about);
        let records = batch.into_iter().filter_map(|(chunk, context)| {
            let readers = kept.readers(&chunk.id)?;
            Some(Chunk {
                metadata: Some(about.part(&chunk.id)),
                chunk: chunk.text,
                document_id: chunk.id,
                context,
                readers,
                ..Chunk::default()
            })
        });
        let sent = stream::iter(records.map(|chunk| hand_on(cx, chunk)));
        let sent = sent.buffered(AT_ONCE).try_collect::<()>().await;
        sent.map_err(|error| self.fault(error))
    }

    fn describe(&self, batch: &[(Named, String)]) -> Triples {
        let making = Making {
            component: COMPONENT,
            version: VERSION,
            started_at: self.started_at,
        };
        let mut triples = Vec::with_capacity(batch.len() * 8 + 12);
        for (chunk, _) in batch {
            let facts = PartFacts {
                chunk_index: Some(chunk.index),
                char_offset: Some(chunk.offset),
                char_length: Some(chunk.length),
                chunk_size: Some(self.cutting.size as u64),
                chunk_overlap: Some(self.cutting.overlap as u64),
                ..PartFacts::new(&chunk.id, PartKind::Chunk, &self.about.id)
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

/// Cuts a text, and says where each slice stands. What takes long does not stop others.
pub(crate) async fn slices(
    cutting: Cutting,
    structure: Structure,
    outline: &mut Outline,
    text: &str,
) -> Result<(Vec<Slice>, Vec<String>), IngestError> {
    if text.len() <= SHORT {
        let slices = cutting.split(text, structure);
        let contexts = outline.contexts(text, &slices);
        return Ok((slices, contexts));
    }
    let (text, mut passing) = (text.to_owned(), outline.clone());
    let cut = tokio::task::spawn_blocking(move || {
        let slices = cutting.split(&text, structure);
        let contexts = passing.contexts(&text, &slices);
        (slices, contexts, passing)
    });
    let (slices, contexts, passed) = cut.await.map_err(unfinished)?;
    *outline = passed;
    Ok((slices, contexts))
}

async fn hand_on(cx: &Cx, chunk: Chunk) -> Result<(), Error> {
    cx.record(chunker::OUTPUT, &chunk).await
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
