//! The writers: embeddings of entities, chunks and row values, made durable before they are acknowledged.
//! What is wrong in a record is reported; the rest of it is kept.

use std::sync::Arc;

use async_trait::async_trait;
use tg_collections::{Target, ended};
use tg_mesh::{ConsumeError, Cx, LeasedStore, RecordConsumer};
use tg_runs::RunContext;
use tg_schemas::msg::{DocumentEmbeddings, GraphEmbeddings, Metadata, RowEmbeddings};
use tg_schemas::{Error, ErrorCode, faults};

use crate::engine::kind::Kind;
use crate::engine::point::{Facets, Point, Subject};
use crate::error::VectorError;
use crate::store::{PointStore, Write};

/// One writer for all three kinds.
pub(crate) struct Writer<S>(pub(crate) Arc<LeasedStore<S>>);

impl<S: PointStore> Writer<S> {
    async fn keep(
        &self,
        cx: &Cx,
        kind: Kind,
        metadata: &Option<Metadata>,
        model: &str,
        points: Points,
    ) -> Result<(), ConsumeError> {
        let Some(target) = Target::of(cx, metadata.as_ref()) else {
            return Ok(());
        };
        let engine = self.0.get().await?;
        let count = points.good.len();
        let late = ended(target.key.collection());
        let write = Write {
            key: target.key,
            kind,
            model: model.to_owned(),
            write_kind: target.kind,
            points: points.good,
        };
        let put = engine.put(write).await.map_err(Error::from)?;
        if put.is_none() {
            cx.not_kept(late);
        }
        metrics::counter!("tg_vectors_written_total", "kind" => kind.as_str())
            .increment(count as u64);
        cx.effect("vectors", count as i64);
        match faults::joined(points.faults.iter().map(ToString::to_string)) {
            None => Ok(()),
            Some(text) => Err(ConsumeError::Dead(Error::new(ErrorCode::BadRequest, text))),
        }
    }
}

/// What can be kept of a record, and why the rest cannot.
#[derive(Default)]
struct Points {
    good: Vec<Point>,
    faults: Vec<VectorError>,
}

impl Points {
    fn add(&mut self, point: Result<Point, VectorError>) {
        match point {
            Ok(point) => self.good.push(point),
            Err(fault) => self.faults.push(fault),
        }
    }
}

#[async_trait]
impl<S: PointStore> RecordConsumer<GraphEmbeddings> for Writer<S> {
    async fn consume(&self, cx: Cx, record: GraphEmbeddings) -> Result<(), ConsumeError> {
        let about = id(&record.metadata);
        cx.subject(&about);
        let mut points = Points::default();
        for (at, one) in record.entities.into_iter().enumerate() {
            let field = format!("entities[{at}]");
            let term = one.entity.filter(|term| !term.is_empty());
            let facets = Facets {
                types: one.rdf_type,
                ..Facets::with(one.attributes)
            };
            let chunk = or(one.chunk_id, &about);
            points.add(match term {
                Some(term) => Point::new(&field, Subject::Entity(term), chunk, facets, one.vector)
                    .map(|point| point.made_by(one.made_by).of_text(one.text)),
                None => Err(missing(&field, "entity")),
            });
        }
        self.keep(&cx, Kind::Entity, &record.metadata, &record.model, points)
            .await
    }
}

#[async_trait]
impl<S: PointStore> RecordConsumer<DocumentEmbeddings> for Writer<S> {
    async fn consume(&self, cx: Cx, record: DocumentEmbeddings) -> Result<(), ConsumeError> {
        cx.subject(&id(&record.metadata));
        let mut points = Points::default();
        for (at, one) in record.chunks.into_iter().enumerate() {
            let field = format!("chunks[{at}]");
            let facets = Facets::with(one.attributes);
            points.add(if one.chunk_id.is_empty() {
                Err(missing(&field, "chunk_id"))
            } else {
                let subject = Subject::Chunk(one.chunk_id.clone());
                Point::new(&field, subject, one.chunk_id, facets, one.vector)
                    .map(|point| point.of_text(one.text))
            });
        }
        self.keep(&cx, Kind::Chunk, &record.metadata, &record.model, points)
            .await
    }
}

#[async_trait]
impl<S: PointStore> RecordConsumer<RowEmbeddings> for Writer<S> {
    async fn consume(&self, cx: Cx, record: RowEmbeddings) -> Result<(), ConsumeError> {
        if record.schema_name.is_empty() {
            let error = Error::new(ErrorCode::BadRequest, "schema_name: is required");
            return Err(ConsumeError::Dead(error));
        }
        let about = id(&record.metadata);
        cx.subject(&about);
        let chunk = chunk_of(&about, &record.schema_name);
        let mut points = Points::default();
        for (at, one) in record.embeddings.into_iter().enumerate() {
            let field = format!("embeddings[{at}]");
            let facets = Facets {
                schema: record.schema_name.clone(),
                index: one.index_name.clone(),
                ..Facets::with(one.attributes)
            };
            points.add(if one.index_name.is_empty() {
                Err(missing(&field, "index_name"))
            } else {
                let subject = Subject::Row {
                    schema: record.schema_name.clone(),
                    index: one.index_name,
                    value: one.index_value,
                    text: one.text,
                };
                Point::new(&field, subject, chunk.clone(), facets, one.vector)
                    .map(|point| point.made_by(record.made_by.clone()))
            });
        }
        self.keep(&cx, Kind::Row, &record.metadata, &record.model, points)
            .await
    }
}

fn id(metadata: &Option<Metadata>) -> String {
    metadata
        .as_ref()
        .map(|of| of.id.clone())
        .unwrap_or_default()
}

/// The chunk that rows come from: extraction names its records `<chunk>:<schema>`.
fn chunk_of(id: &str, schema: &str) -> String {
    let bare = id.strip_suffix(schema).and_then(|id| id.strip_suffix(':'));
    bare.unwrap_or(id).to_owned()
}

fn or(text: String, otherwise: &str) -> String {
    if text.is_empty() {
        otherwise.to_owned()
    } else {
        text
    }
}

fn missing(field: &str, name: &str) -> VectorError {
    VectorError::field(format!("{field}.{name}"), "is required")
}
