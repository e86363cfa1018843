//! The queries: nearest entities, chunks and row values. A collection without vectors has none; what
//! fails is told as an error, never as an empty answer.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tg_collections::CollectionKey;
use tg_mesh::{Cx, LeasedStore, RequestHandler, Responder};
use tg_schemas::msg::{
    ChunkMatch, DocumentEmbeddingsRequest, DocumentEmbeddingsResponse, EntityMatch,
    GraphEmbeddingsRequest, GraphEmbeddingsResponse, RowEmbeddingsRequest, RowEmbeddingsResponse,
    RowIndexMatch,
};
use tg_schemas::{Error, ErrorCode};

use super::{limit, wire};
use crate::engine::kind::Kind;
use crate::engine::point::{Condition, Subject, check_vector};
use crate::store::{Hit, PointStore, Search};

/// Subjects returned when a question does not say how many.
const LIMIT: usize = 10;

/// One service for all three kinds.
pub(crate) struct Querier<S>(pub(crate) Arc<LeasedStore<S>>);

/// What the three requests have in common.
struct Asked<'a> {
    kind: Kind,
    vector: Vec<f32>,
    limit: i64,
    collection: &'a str,
    model: String,
    attributes: &'a Map<String, Value>,
    conditions: Vec<Condition>,
}

impl<S: PointStore> Querier<S> {
    /// `fault` is the wire type of what has none of its own.
    async fn find(&self, cx: &Cx, asked: Asked<'_>, fault: &str) -> Result<Vec<Hit>, Error> {
        if asked.vector.is_empty() {
            return Ok(Vec::new());
        }
        check_vector("vector", &asked.vector)?;
        let mut conditions = asked.conditions;
        conditions.extend(Condition::of_attributes(asked.attributes)?);
        let engine = self.0.get().await?;
        let search = engine.search(Search {
            key: CollectionKey::of(cx, asked.collection),
            kind: asked.kind,
            vector: asked.vector,
            model: asked.model,
            limit: limit(asked.limit, LIMIT),
            conditions,
        });
        search.await.map_err(|error| wire(error, fault))
    }
}

#[async_trait]
impl<S: PointStore> RequestHandler<GraphEmbeddingsRequest, GraphEmbeddingsResponse> for Querier<S> {
    async fn serve(
        &self,
        cx: Cx,
        ask: GraphEmbeddingsRequest,
        mut out: Responder<GraphEmbeddingsResponse>,
    ) -> Result<(), Error> {
        let of_type = (!ask.rdf_type.is_empty()).then(|| Condition::of_type(&ask.rdf_type));
        let asked = Asked {
            kind: Kind::Entity,
            vector: ask.vector,
            limit: ask.limit,
            collection: &ask.collection,
            model: ask.model,
            attributes: &ask.attributes,
            conditions: of_type.into_iter().collect(),
        };
        let hits = self
            .find(&cx, asked, "graph-embeddings-query-error")
            .await?;
        let entities = hits.into_iter().filter_map(|hit| match hit.subject {
            Subject::Entity(term) => Some(EntityMatch {
                entity: Some(term),
                score: hit.score,
                rdf_type: hit.facets.types,
                attributes: hit.facets.attributes,
            }),
            _ => None,
        });
        let entities = entities.collect();
        out.send(GraphEmbeddingsResponse {
            error: None,
            entities,
        })
        .await
    }
}

#[async_trait]
impl<S: PointStore> RequestHandler<DocumentEmbeddingsRequest, DocumentEmbeddingsResponse>
    for Querier<S>
{
    async fn serve(
        &self,
        cx: Cx,
        ask: DocumentEmbeddingsRequest,
        mut out: Responder<DocumentEmbeddingsResponse>,
    ) -> Result<(), Error> {
        let asked = Asked {
            kind: Kind::Chunk,
            vector: ask.vector,
            limit: ask.limit,
            collection: &ask.collection,
            model: ask.model,
            attributes: &ask.attributes,
            conditions: Vec::new(),
        };
        let hits = self
            .find(&cx, asked, "document-embeddings-query-error")
            .await?;
        let chunks = hits.into_iter().filter_map(|hit| match hit.subject {
            Subject::Chunk(chunk_id) => Some(ChunkMatch {
                chunk_id,
                score: hit.score,
                attributes: hit.facets.attributes,
            }),
            _ => None,
        });
        let chunks = chunks.collect();
        out.send(DocumentEmbeddingsResponse {
            error: None,
            chunks,
        })
        .await
    }
}

#[async_trait]
impl<S: PointStore> RequestHandler<RowEmbeddingsRequest, RowEmbeddingsResponse> for Querier<S> {
    async fn serve(
        &self,
        cx: Cx,
        ask: RowEmbeddingsRequest,
        mut out: Responder<RowEmbeddingsResponse>,
    ) -> Result<(), Error> {
        if ask.schema_name.is_empty() {
            return Err(Error::new(
                ErrorCode::BadRequest,
                "schema_name: is required",
            ));
        }
        let mut conditions = vec![Condition::of_schema(&ask.schema_name)];
        let index = ask.index_name.as_deref().filter(|name| !name.is_empty());
        conditions.extend(index.map(Condition::of_index));
        let asked = Asked {
            kind: Kind::Row,
            vector: ask.vector,
            limit: ask.limit,
            collection: &ask.collection,
            model: ask.model,
            attributes: &ask.attributes,
            conditions,
        };
        let hits = self.find(&cx, asked, "row-embeddings-query-error").await?;
        let matches = hits.into_iter().filter_map(|hit| match hit.subject {
            Subject::Row {
                index, value, text, ..
            } => Some(RowIndexMatch {
                index_name: index,
                index_value: value,
                text,
                score: hit.score,
                attributes: hit.facets.attributes,
            }),
            _ => None,
        });
        let matches = matches.collect();
        out.send(RowEmbeddingsResponse {
            error: None,
            matches,
        })
        .await
    }
}
