//! `kw-index`: indexes chunks and finds them by their words.

use std::sync::Arc;

use async_trait::async_trait;
use tg_collections::{CollectionKey, Target};
use tg_mesh::{ConsumeError, Cx, LeasedStore, RecordConsumer, RequestHandler, Responder};
use tg_runs::RunContext;
use tg_schemas::msg::{Chunk, ChunkMatch, KeywordIndexRequest, KeywordIndexResponse, in_context};
use tg_schemas::processors::kw_index;
use tg_schemas::{Error, ErrorCode};

use super::{limit, wire};
use crate::store::{ChunkText, KeywordStore};

/// Chunks returned when a question does not say how many.
const LIMIT: usize = 20;

pub(crate) struct KeywordIndex<S>(pub(crate) Arc<LeasedStore<S>>);

#[async_trait]
impl<S: KeywordStore> RecordConsumer<Chunk> for KeywordIndex<S> {
    async fn consume(&self, cx: Cx, record: Chunk) -> Result<(), ConsumeError> {
        let Some(target) = Target::of(&cx, record.metadata.as_ref()) else {
            return Ok(());
        };
        let id = chunk_id(&record);
        if id.is_empty() {
            let error = Error::new(ErrorCode::BadRequest, "metadata.id: is required");
            return Err(ConsumeError::Dead(error));
        }
        cx.subject(&id);
        if record.fingerprint(kw_index::PROCESSOR.id).is_none() {
            return Ok(());
        }
        let index = self.0.get().await?;
        let chunk = ChunkText {
            id,
            text: in_context(&record.context, &record.chunk).into_owned(),
        };
        index
            .put(&target.key, target.kind, chunk)
            .await
            .map_err(Error::from)?;
        metrics::counter!("tg_keywords_indexed_total").increment(1);
        cx.effect("keywords", 1);
        Ok(())
    }
}

#[async_trait]
impl<S: KeywordStore> RequestHandler<KeywordIndexRequest, KeywordIndexResponse>
    for KeywordIndex<S>
{
    async fn serve(
        &self,
        cx: Cx,
        ask: KeywordIndexRequest,
        mut out: Responder<KeywordIndexResponse>,
    ) -> Result<(), Error> {
        let index = self.0.get().await?;
        let key = CollectionKey::of(&cx, &ask.collection);
        let hits = index.search(&key, &ask.query, limit(ask.limit, LIMIT));
        let hits = hits
            .await
            .map_err(|error| wire(error, "keyword-index-error"))?;
        let chunks = hits.into_iter().map(|hit| ChunkMatch {
            chunk_id: hit.id,
            score: hit.score,
            ..ChunkMatch::default()
        });
        let chunks = chunks.collect();
        out.send(KeywordIndexResponse {
            error: None,
            chunks,
        })
        .await
    }
}

/// The id of a chunk: the library's document of it, else what the record is about.
fn chunk_id(chunk: &Chunk) -> String {
    if !chunk.document_id.is_empty() {
        return chunk.document_id.clone();
    }
    chunk
        .metadata
        .as_ref()
        .map(|of| of.id.clone())
        .unwrap_or_default()
}
