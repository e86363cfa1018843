//! `graph-embeddings`: what was said of entities becomes vectors of entities.

use async_trait::async_trait;
use tg_mesh::{ConsumeError, Cx, RecordConsumer};
use tg_runs::RunContext;
use tg_schemas::msg::{EntityContext, EntityContexts, EntityEmbeddings, GraphEmbeddings, Metadata};
use tg_schemas::processors::graph_embeddings;
use tg_schemas::{Error, ErrorCode};

use super::Group;
use super::batch::{Batcher, Item, Stage};

pub(crate) struct Entities(pub(crate) Batcher<Context>);

/// An entity in a context, to embed.
pub(crate) struct Context {
    metadata: Metadata,
    of: EntityContext,
}

impl Item for Context {
    fn text(&self) -> &str {
        &self.of.context
    }
}

#[async_trait]
impl RecordConsumer<EntityContexts> for Entities {
    async fn consume(&self, cx: Cx, record: EntityContexts) -> Result<(), ConsumeError> {
        let metadata = record.metadata.unwrap_or_default();
        cx.subject(&metadata.id);
        let group = Group::of(&cx, &metadata, "");
        let (mut items, mut missing) = (Vec::new(), None);
        for (at, mut of) in record.entities.into_iter().enumerate() {
            if of.entity.is_none() {
                missing.get_or_insert(at);
            } else if !of.context.trim().is_empty() {
                if of.chunk_id.is_empty() {
                    of.chunk_id.clone_from(&metadata.id);
                }
                let metadata = metadata.clone();
                items.push(Context { metadata, of });
            }
        }
        self.0.handle(&cx, group, items, &Output).await?;
        match missing {
            None => Ok(()),
            Some(at) => {
                let text = format!("entities[{at}].entity: is required");
                Err(ConsumeError::Dead(Error::new(ErrorCode::BadRequest, text)))
            }
        }
    }
}

struct Output;

impl Stage<Context> for Output {
    async fn write(
        &self,
        cx: &Cx,
        items: Vec<(Context, Vec<f32>)>,
        model: String,
    ) -> Result<(), Error> {
        let metadata = items.first().map(|(context, _)| context.metadata.clone());
        let entities = items.into_iter().map(|(context, vector)| EntityEmbeddings {
            entity: context.of.entity,
            vector,
            chunk_id: context.of.chunk_id,
            rdf_type: context.of.rdf_type,
            attributes: context.of.attributes,
            made_by: context.of.made_by,
        });
        let record = GraphEmbeddings {
            metadata,
            entities: entities.collect(),
            model,
        };
        cx.effect("vectors", record.entities.len() as i64);
        cx.record(graph_embeddings::OUTPUT, &record).await
    }
}
