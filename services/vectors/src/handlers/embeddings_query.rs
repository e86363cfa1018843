//! The queries: nearest entities, chunks and row values. A collection without vectors has none; what
//! fails is reported as an error, never as an empty answer.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tg_collections::CollectionKey;
use tg_mesh::{Cx, LeasedStore, RequestHandler, Responder};
use tg_schemas::msg::{
    ChunkEmbeddings, ChunkMatch, DocumentEmbeddingsRequest, DocumentEmbeddingsResponse,
    EntityEmbeddings, EntityMatch, GraphEmbeddingsRequest, GraphEmbeddingsResponse,
    RowEmbeddingsRequest, RowEmbeddingsResponse, RowIndexMatch,
};
use tg_schemas::{Error, ErrorCode};

use super::{limit, wire};
use crate::engine::kind::Kind;
use crate::engine::point::{Condition, Point, Subject, check_vector};
use crate::error::VectorError;
use crate::store::{Hit, Page, PointStore, Search};

/// Subjects returned when a question does not say how many.
const LIMIT: usize = 10;

/// Vectors of a page of an export.
const PAGE: usize = 1_000;

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
    /// Another model is told instead of refused.
    tell_model: bool,
}

/// What a search came to.
#[derive(Default)]
struct Found {
    hits: Vec<Hit>,
    /// Model of the collection's vectors, where nothing was searched because of it.
    model: String,
}

impl<S: PointStore> Querier<S> {
    /// `fault` is the wire type of what has none of its own.
    async fn find(&self, cx: &Cx, asked: Asked<'_>, fault: &str) -> Result<Found, Error> {
        if asked.vector.is_empty() {
            return Ok(Found::default());
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
        match search.await {
            Ok(hits) => Ok(Found {
                hits,
                model: String::new(),
            }),
            Err(VectorError::OtherModel { held, .. }) if asked.tell_model => Ok(Found {
                hits: Vec::new(),
                model: held,
            }),
            Err(error) => Err(wire(error, fault)),
        }
    }

    /// A page of all vectors of a collection, and where the next begins.
    async fn page(
        &self,
        cx: &Cx,
        kind: Kind,
        (collection, after): (&str, &str),
    ) -> Result<(Page, String), Error> {
        let wrong = || VectorError::field("after", "is not the 'next' of an earlier page");
        let after = match after {
            "" => None,
            text => Some(text.parse().map_err(|_| wrong())?),
        };
        let engine = self.0.get().await?;
        let key = CollectionKey::of(cx, collection);
        let page = engine.page(&key, kind, after, PAGE).await?;
        let next = page.next.map_or_else(String::new, |next| next.to_string());
        Ok((page, next))
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
        if ask.export {
            let from = (ask.collection.as_str(), ask.after.as_str());
            let (page, next) = self.page(&cx, Kind::Entity, from).await?;
            let stored = page.points.into_iter().filter_map(stored_entity).collect();
            let page = GraphEmbeddingsResponse {
                model: page.model,
                page: true,
                stored,
                next,
                ..GraphEmbeddingsResponse::default()
            };
            return out.send(page).await;
        }
        let of_type = (!ask.rdf_type.is_empty()).then(|| Condition::of_type(&ask.rdf_type));
        let asked = Asked {
            kind: Kind::Entity,
            vector: ask.vector,
            limit: ask.limit,
            collection: &ask.collection,
            model: ask.model,
            attributes: &ask.attributes,
            conditions: of_type.into_iter().collect(),
            tell_model: ask.tell_model,
        };
        let found = self
            .find(&cx, asked, "graph-embeddings-query-error")
            .await?;
        let entities = found.hits.into_iter().filter_map(|hit| match hit.subject {
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
            model: found.model,
            ..GraphEmbeddingsResponse::default()
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
        if ask.export {
            let from = (ask.collection.as_str(), ask.after.as_str());
            let (page, next) = self.page(&cx, Kind::Chunk, from).await?;
            let stored = page.points.into_iter().filter_map(stored_chunk).collect();
            let page = DocumentEmbeddingsResponse {
                model: page.model,
                page: true,
                stored,
                next,
                ..DocumentEmbeddingsResponse::default()
            };
            return out.send(page).await;
        }
        let asked = Asked {
            kind: Kind::Chunk,
            vector: ask.vector,
            limit: ask.limit,
            collection: &ask.collection,
            model: ask.model,
            attributes: &ask.attributes,
            conditions: Vec::new(),
            tell_model: ask.tell_model,
        };
        let found = self
            .find(&cx, asked, "document-embeddings-query-error")
            .await?;
        let chunks = found.hits.into_iter().filter_map(|hit| match hit.subject {
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
            model: found.model,
            ..DocumentEmbeddingsResponse::default()
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
            tell_model: ask.tell_model,
        };
        let found = self.find(&cx, asked, "row-embeddings-query-error").await?;
        let matches = found.hits.into_iter().filter_map(|hit| match hit.subject {
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
            model: found.model,
        })
        .await
    }
}

/// An entity's vector as its writer brought it.
fn stored_entity(point: Point) -> Option<EntityEmbeddings> {
    let Subject::Entity(term) = point.subject else {
        return None;
    };
    Some(EntityEmbeddings {
        entity: Some(term),
        vector: point.vector,
        chunk_id: point.chunk,
        rdf_type: point.facets.types,
        attributes: point.facets.attributes,
        made_by: point.made_by,
        text: point.text.unwrap_or_default(),
    })
}

/// A chunk's.
fn stored_chunk(point: Point) -> Option<ChunkEmbeddings> {
    let Subject::Chunk(chunk_id) = point.subject else {
        return None;
    };
    Some(ChunkEmbeddings {
        chunk_id,
        vector: point.vector,
        attributes: point.facets.attributes,
        text: point.text.unwrap_or_default(),
    })
}
