//! `row-embeddings`: values of rows become vectors, by the indexes of their schema.

use async_trait::async_trait;
use tg_mesh::{ConsumeError, Cx, RecordConsumer};
use tg_runs::RunContext;
use tg_schemas::msg::{ExtractedObject, Metadata, RowEmbeddings, RowIndexEmbedding};
use tg_schemas::processors::row_embeddings;
use tg_schemas::{Error, ErrorCode};

use super::Group;
use super::batch::{Batcher, Item, Stage};
use crate::engine::schema::{self, Schema, Value};

/// Tries after which a schema that is still unknown is taken to be unknown for good.
const TRIES: u32 = 4;

pub(crate) struct Rows(pub(crate) Batcher<Entry>);

/// A value to embed.
pub(crate) struct Entry {
    metadata: Metadata,
    schema: String,
    made_by: String,
    value: Value,
}

impl Item for Entry {
    fn text(&self) -> &str {
        &self.value.text
    }
}

#[async_trait]
impl RecordConsumer<ExtractedObject> for Rows {
    async fn consume(&self, cx: Cx, record: ExtractedObject) -> Result<(), ConsumeError> {
        let metadata = record.metadata.unwrap_or_default();
        let name = record.schema_name;
        // Extraction names its records `<chunk>:<schema>`.
        let chunk = metadata.id.strip_suffix(&name);
        let chunk = chunk.and_then(|chunk| chunk.strip_suffix(':'));
        cx.subject(chunk.unwrap_or(&metadata.id));
        let row = cx.config().get(cx.workspace(), schema::KIND, &name);
        let Some(schema) = row.as_deref().and_then(Schema::read) else {
            let error = Error::new(
                ErrorCode::NotFound,
                "schema_name: this workspace has no such schema, or it cannot be read",
            );
            // It may have been written a moment ago.
            return Err(match cx.headers.attempt.unwrap_or(0) < TRIES {
                true => ConsumeError::Retry { error, after: None },
                false => ConsumeError::Dead(error),
            });
        };
        // Of one chunk and schema: the store knows values by both.
        let alike = format!("{}\u{0}{name}\u{0}{}", metadata.id, record.made_by);
        let group = Group::of(&cx, &metadata, &alike);
        let values = schema.values(&record.values).into_iter();
        let items = values.map(|value| Entry {
            metadata: metadata.clone(),
            schema: name.clone(),
            made_by: record.made_by.clone(),
            value,
        });
        self.0.handle(&cx, group, items.collect(), &Output).await
    }
}

struct Output;

impl Stage<Entry> for Output {
    async fn write(
        &self,
        cx: &Cx,
        items: Vec<(Entry, Vec<f32>)>,
        model: String,
    ) -> Result<(), Error> {
        let Some((first, _)) = items.first() else {
            return Ok(());
        };
        let (metadata, schema_name) = (first.metadata.clone(), first.schema.clone());
        let made_by = first.made_by.clone();
        let embeddings = items.into_iter().map(|(entry, vector)| RowIndexEmbedding {
            index_name: entry.value.index,
            index_value: entry.value.value,
            text: entry.value.text,
            vector,
            ..RowIndexEmbedding::default()
        });
        let record = RowEmbeddings {
            metadata: Some(metadata),
            schema_name,
            embeddings: embeddings.collect(),
            model,
            made_by,
        };
        cx.effect("vectors", record.embeddings.len() as i64);
        cx.record(row_embeddings::OUTPUT, &record).await
    }
}
