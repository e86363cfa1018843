//! Where a record's content is: in the library, or in the record itself, whose document is then put into the
//! library, as everything that is cited must be found there.

use tg_clients::library::Library;
use tg_mesh::Cx;
use tg_provenance::{DocumentFacts, document};
use tg_runs::RunContext;
use tg_schemas::msg::{Metadata, TextDocument, Triples};
use tg_schemas::processors::shared;

use crate::engine::outline::Start;
use crate::error::{IngestError, Unreadable};

/// What a record is about.
#[derive(Debug, Clone)]
pub(crate) struct About {
    /// Id of what its parts are taken from.
    pub(crate) id: String,
    /// `id` as above, `root` the document, `collection` where it is processed to.
    pub(crate) metadata: Metadata,
}

impl About {
    /// Of a record. Without `document_id` the metadata's id counts.
    pub(crate) fn new(metadata: Option<Metadata>, document_id: &str) -> Self {
        let metadata = metadata.unwrap_or_default();
        let id = match document_id {
            "" => metadata.id.clone(),
            id => id.to_owned(),
        };
        let root = match metadata.root.as_str() {
            "" => id.clone(),
            root => root.to_owned(),
        };
        let collection = metadata.collection().to_owned();
        Self {
            metadata: Metadata {
                id: id.clone(),
                root,
                collection,
            },
            id,
        }
    }

    /// Metadata of a part.
    pub(crate) fn part(&self, id: &str) -> Metadata {
        Metadata {
            id: id.to_owned(),
            ..self.metadata.clone()
        }
    }
}

/// Where a text begins, and what it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct TextOrigin {
    /// Its media type; empty for plain text.
    pub(crate) kind: String,
    /// Below what it begins.
    pub(crate) start: Start,
}

impl TextOrigin {
    /// As its record tells.
    pub(crate) fn of(record: &TextDocument) -> Self {
        Self {
            kind: record.kind.clone(),
            start: Start {
                title: record.title.clone(),
                headings: record.headings.clone(),
                table: record.table.clone(),
                page: record.page,
            },
        }
    }
}

/// Puts content that came by itself into the library and describes its document in the graph.
pub(crate) async fn keep(
    cx: &Cx,
    about: About,
    kind: &str,
    content: &[u8],
) -> Result<About, IngestError> {
    if content.is_empty() {
        return Err(IngestError::unreadable(&about.id, Unreadable::Empty));
    }
    let fault = |error| IngestError::asked(&about.id, error);
    let kept = Library::of_flow(cx).ensure(&about.id, kind, content).await;
    let id = kept.map_err(fault)?;
    let triples = Triples {
        metadata: Some(Metadata {
            id: id.clone(),
            root: id.clone(),
            collection: about.metadata.collection.clone(),
        }),
        triples: document(&DocumentFacts {
            id: &id,
            kind,
            ..DocumentFacts::default()
        }),
    };
    let written = cx.record(shared::TRIPLES, &triples).await;
    written.map_err(fault)?;
    cx.effect("triples", triples.triples.len() as i64);
    Ok(About::new(triples.metadata, &id))
}
