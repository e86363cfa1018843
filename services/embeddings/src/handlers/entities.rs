//! `graph-embeddings`: what was said of entities becomes vectors of entities.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{ConsumeError, Cx, RecordConsumer};
use tg_runs::RunContext;
use tg_schemas::faults::joined;
use tg_schemas::msg::{EntityContext, EntityContexts, EntityEmbeddings, GraphEmbeddings, Metadata};
use tg_schemas::processors::graph_embeddings;
use tg_schemas::{Error, ErrorCode, Term};

use super::Group;
use super::batch::{Batcher, Item, Stage};
use crate::embedder::MOST_TEXT;

pub(crate) struct Entities(pub(crate) Batcher<Context>);

/// An entity in a context, to embed.
pub(crate) struct Context {
    metadata: Metadata,
    of: EntityContext,
    /// What who wrote it is told by.
    receipt: Option<Arc<str>>,
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
        let (mut items, mut faults, mut blank) = (Vec::new(), Vec::new(), Vec::new());
        for (at, mut of) in record.entities.into_iter().enumerate() {
            // Several records become one: what its store refuses is found here, so that it is told of its own record alone.
            if of.entity.as_ref().is_none_or(Term::is_empty) {
                faults.push(format!("entities[{at}].entity: is required"));
            } else if of.context.len() > MOST_TEXT {
                let why = format!("is longer than {MOST_TEXT} bytes");
                faults.push(format!("entities[{at}].context: {why}"));
            } else if of.context.trim().is_empty() {
                blank.push(at);
            } else {
                if of.chunk_id.is_empty() {
                    of.chunk_id.clone_from(&metadata.id);
                }
                let metadata = metadata.clone();
                let receipt = None;
                items.push(Context {
                    metadata,
                    of,
                    receipt,
                });
            }
        }
        if items.is_empty() {
            let why = "entities: no vector is made of entities without a context";
            cx.not_kept(Error::new(ErrorCode::BadRequest, why));
        } else if let Some(receipt) = cx.pass_on() {
            let receipt: Arc<str> = receipt.into();
            for item in &mut items {
                item.receipt = Some(receipt.clone());
            }
            let why = "must not be blank: no vector is made of it";
            let told = |at: usize| format!("entities[{at}].context: {why}");
            if let Some(why) = joined(blank.into_iter().map(told)) {
                cx.not_kept(Error::new(ErrorCode::BadRequest, why));
            }
        }
        self.0.handle(&cx, group, items, &Output).await?;
        match joined(faults) {
            None => Ok(()),
            Some(text) => Err(ConsumeError::Dead(Error::new(ErrorCode::BadRequest, text))),
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
        let receipts = receipts(items.iter().map(|(context, _)| context));
        let entities = items.into_iter().map(|(context, vector)| EntityEmbeddings {
            entity: context.of.entity,
            vector,
            chunk_id: context.of.chunk_id,
            rdf_type: context.of.rdf_type,
            attributes: context.of.attributes,
            made_by: context.of.made_by,
            text: context.of.context,
        });
        let record = GraphEmbeddings {
            metadata,
            entities: entities.collect(),
            model,
        };
        cx.effect("vectors", record.entities.len() as i64);
        cx.record_for(graph_embeddings::OUTPUT, &record, receipts)
            .await
    }
}

/// The receipts of all records that items come from, each once.
fn receipts<'a>(of: impl Iterator<Item = &'a Context>) -> Option<String> {
    let all: BTreeSet<&str> = of.filter_map(|one| one.receipt.as_deref()).collect();
    let all: Vec<&str> = all.into_iter().collect();
    (!all.is_empty()).then(|| all.join(" "))
}
