//! `document-embeddings`: chunks become vectors of chunks.

use async_trait::async_trait;
use serde_json::{Map, Value};
use tg_mesh::{ConsumeError, Cx, RecordConsumer};
use tg_runs::RunContext;
use tg_schemas::msg::{Chunk, ChunkEmbeddings, DocumentEmbeddings, Metadata, in_context};
use tg_schemas::processors::document_embeddings;
use tg_schemas::{Error, ErrorCode};

use super::Group;
use super::batch::{Batcher, Item, Stage};

pub(crate) struct Chunks(pub(crate) Batcher<Piece>);

/// A chunk to embed.
pub(crate) struct Piece {
    metadata: Metadata,
    id: String,
    text: String,
    attributes: Map<String, Value>,
}

impl Item for Piece {
    fn text(&self) -> &str {
        &self.text
    }
}

#[async_trait]
impl RecordConsumer<Chunk> for Chunks {
    async fn consume(&self, cx: Cx, record: Chunk) -> Result<(), ConsumeError> {
        let metadata = record.metadata.clone().unwrap_or_default();
        let id = if record.document_id.is_empty() {
            metadata.id.clone()
        } else {
            record.document_id.clone()
        };
        if id.is_empty() {
            let error = Error::new(ErrorCode::BadRequest, "metadata.id: is required");
            return Err(ConsumeError::Dead(error));
        }
        cx.subject(&id);
        if record
            .fingerprint(document_embeddings::PROCESSOR.id)
            .is_none()
        {
            return Ok(());
        }
        if record.chunk.trim().is_empty() {
            return Ok(());
        }
        let group = Group::of(&cx, &metadata, "");
        let piece = Piece {
            metadata,
            id,
            text: in_context(&record.context, &record.chunk).into_owned(),
            attributes: record.attributes,
        };
        self.0.handle(&cx, group, vec![piece], &Output).await
    }
}

struct Output;

impl Stage<Piece> for Output {
    async fn write(
        &self,
        cx: &Cx,
        items: Vec<(Piece, Vec<f32>)>,
        model: String,
    ) -> Result<(), Error> {
        let metadata = items.first().map(|(piece, _)| piece.metadata.clone());
        let chunks = items.into_iter().map(|(piece, vector)| ChunkEmbeddings {
            chunk_id: piece.id,
            vector,
            attributes: piece.attributes,
            text: piece.text,
        });
        let record = DocumentEmbeddings {
            metadata,
            chunks: chunks.collect(),
            model,
        };
        cx.effect("vectors", record.chunks.len() as i64);
        cx.record(document_embeddings::OUTPUT, &record).await
    }
}
