//! `chunker`: a text comes in, in the record or by its name; its chunks go on.

use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{ConsumeError, Cx, RecordConsumer, clock};
use tg_runs::RunContext;
use tg_schemas::msg::TextDocument;
use tokio::sync::Semaphore;

use crate::cut::Cut;
use crate::engine::chunks::Cutting;
use crate::error::IngestError;
use crate::source::{About, TextOrigin, keep};

/// Reads `input` of the chunker.
pub(crate) struct Chunker {
    /// Long texts at once.
    long: Semaphore,
}

impl Chunker {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            long: Semaphore::new(2),
        })
    }

    async fn cut(&self, cx: &Cx, about: About, record: TextDocument) -> Result<(), IngestError> {
        let cutting = Cutting::read(|name| cx.parameter(name))?;
        let by_itself = record.document_id.is_empty() && !record.text.is_empty();
        let about = match by_itself {
            true => keep(cx, about, "text/plain", record.text.as_bytes()).await?,
            false if about.id.is_empty() => return Err(IngestError::Unnamed("text")),
            false => about,
        };
        cx.subject(&about.id);
        let started_at = clock::rfc3339();
        let place = TextOrigin::of(&record);
        let mut work = Cut::new(cx, &about, cutting, place, &started_at);
        let _turn;
        if record.text.is_empty() {
            let turn = self.long.acquire().await;
            _turn = turn.map_err(|_| IngestError::Stopping)?;
            work.library().await?;
        } else {
            work.window(&record.text).await?;
        }
        work.finish().await
    }
}

#[async_trait]
impl RecordConsumer<TextDocument> for Chunker {
    async fn consume(&self, cx: Cx, record: TextDocument) -> Result<(), ConsumeError> {
        let about = About::new(record.metadata.clone(), &record.document_id);
        if !cx.is_current(&about.metadata.collection) {
            return Ok(());
        }
        Ok(self.cut(&cx, about, record).await?)
    }
}
