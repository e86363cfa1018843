//! Frames of bulk import and export: batches of records in the API form, five kinds of them.
//!
//! A frame may hold more than a record should carry; [`Record::split`] cuts it into records of the size that
//! stores take well. Pure.

mod bytes;
mod read;
mod show;

use tg_schemas::Error;
use tg_schemas::msg::{
    DocumentEmbeddings, EntityContexts, ExtractedObject, GraphEmbeddings, Triples,
};

use super::fields::Body;

pub(crate) use read::{document_embeddings, graph_embeddings, triples};
pub(crate) use show::{chunk_value, entity_value, metadata};
pub use show::{
    show_document_embeddings, show_entity_contexts, show_graph_embeddings, show_rows, show_triples,
};

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkKind {
    /// Triples.
    Triples,
    /// Vectors of entities.
    GraphEmbeddings,
    /// Vectors of chunks.
    DocumentEmbeddings,
    /// Texts about entities.
    EntityContexts,
    /// Rows of a schema.
    Rows,
}

impl BulkKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::Triples,
        Self::GraphEmbeddings,
        Self::DocumentEmbeddings,
        Self::EntityContexts,
        Self::Rows,
    ];

    /// Name in paths.
    pub fn name(self) -> &'static str {
        match self {
            Self::Triples => "triples",
            Self::GraphEmbeddings => "graph-embeddings",
            Self::DocumentEmbeddings => "document-embeddings",
            Self::EntityContexts => "entity-contexts",
            Self::Rows => "rows",
        }
    }

    /// A kind by its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The interface of a flow that takes such records.
    pub fn interface(self) -> &'static str {
        match self {
            Self::Triples => "triples-store",
            Self::GraphEmbeddings => "graph-embeddings-store",
            Self::DocumentEmbeddings => "document-embeddings-store",
            Self::EntityContexts => "entity-contexts-load",
            Self::Rows => "rows-store",
        }
    }

    /// What one item of a frame is called in counters.
    pub fn items(self) -> &'static str {
        match self {
            Self::Triples => "triples",
            Self::GraphEmbeddings | Self::EntityContexts => "entities",
            Self::DocumentEmbeddings => "chunks",
            Self::Rows => "rows",
        }
    }
}

/// A frame as it goes to a flow.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// Triples.
    Triples(Triples),
    /// Vectors of entities.
    GraphEmbeddings(GraphEmbeddings),
    /// Vectors of chunks.
    DocumentEmbeddings(DocumentEmbeddings),
    /// Texts about entities.
    EntityContexts(EntityContexts),
    /// Rows of a schema.
    Rows(ExtractedObject),
}

/// Most items of one record.
const MOST: usize = 1000;
/// Most bytes of the items of one record, about, unless a single one has more.
const BYTES: usize = 4 << 20;

impl Record {
    /// Reads a frame. An error names the field.
    ///
    /// # Errors
    /// `bad-request`, with the field that is not what a frame of this kind has. The frames after it may be fine.
    pub fn read(kind: BulkKind, body: &Body) -> Result<Self, Error> {
        Ok(match kind {
            BulkKind::Triples => Self::Triples(read::triples_frame(body)?),
            BulkKind::GraphEmbeddings => Self::GraphEmbeddings(read::graph_frame(body)?),
            BulkKind::DocumentEmbeddings => Self::DocumentEmbeddings(read::document_frame(body)?),
            BulkKind::EntityContexts => Self::EntityContexts(read::contexts_frame(body)?),
            BulkKind::Rows => Self::Rows(read::rows_frame(body)?),
        })
    }

    /// How many items it holds.
    pub fn items(&self) -> usize {
        match self {
            Self::Triples(record) => record.triples.len(),
            Self::GraphEmbeddings(record) => record.entities.len(),
            Self::DocumentEmbeddings(record) => record.chunks.len(),
            Self::EntityContexts(record) => record.entities.len(),
            Self::Rows(record) => record.values.len(),
        }
    }

    /// The same in records of bounded size, each with the metadata of the whole. An empty frame is no record.
    pub fn split(self) -> Vec<Self> {
        match self {
            Self::Triples(mut record) => {
                let all = std::mem::take(&mut record.triples);
                cut(all, bytes::of_triple)
                    .map(|triples| {
                        Self::Triples(Triples {
                            triples,
                            ..record.clone()
                        })
                    })
                    .collect()
            }
            Self::GraphEmbeddings(mut record) => {
                let all = std::mem::take(&mut record.entities);
                cut(all, bytes::of_entity)
                    .map(|entities| {
                        Self::GraphEmbeddings(GraphEmbeddings {
                            entities,
                            ..record.clone()
                        })
                    })
                    .collect()
            }
            Self::DocumentEmbeddings(mut record) => {
                let all = std::mem::take(&mut record.chunks);
                cut(all, bytes::of_chunk)
                    .map(|chunks| {
                        Self::DocumentEmbeddings(DocumentEmbeddings {
                            chunks,
                            ..record.clone()
                        })
                    })
                    .collect()
            }
            Self::EntityContexts(mut record) => {
                let all = std::mem::take(&mut record.entities);
                cut(all, bytes::of_context)
                    .map(|entities| {
                        Self::EntityContexts(EntityContexts {
                            entities,
                            ..record.clone()
                        })
                    })
                    .collect()
            }
            Self::Rows(mut record) => {
                let all = std::mem::take(&mut record.values);
                cut(all, bytes::of_row)
                    .map(|values| {
                        Self::Rows(ExtractedObject {
                            values,
                            ..record.clone()
                        })
                    })
                    .collect()
            }
        }
    }
}

/// Lists of at most so many items and bytes, each with at least one.
fn cut<T>(items: Vec<T>, bytes: impl Fn(&T) -> usize) -> impl Iterator<Item = Vec<T>> {
    let mut rest = items.into_iter().peekable();
    std::iter::from_fn(move || {
        let (mut part, mut held) = (Vec::new(), 0);
        while let Some(item) = rest.next_if(|item| {
            held += bytes(item);
            part.is_empty() || (part.len() < MOST && held <= BYTES)
        }) {
            part.push(item);
        }
        (!part.is_empty()).then_some(part)
    })
}

#[cfg(test)]
mod tests;
