//! `graph-neighbours` and `graph-sources`: what retrieval asks beside patterns, on topics that the mesh adds
//! to a flow.

use std::sync::Arc;

use async_trait::async_trait;
use tg_collections::CollectionKey;
use tg_mesh::{Cx, LeasedStore, RequestHandler, Responder};
use tg_schemas::Error;
use tg_schemas::msg::{
    NeighbourhoodRequest, NeighbourhoodResponse, SourcesRequest, SourcesResponse,
};

use super::user;
use crate::store::QuadStore;

/// Wire type of faults while querying.
const FAULT: &str = "triples-query-error";

pub(crate) struct Neighbours<S>(pub(crate) Arc<LeasedStore<S>>);

#[async_trait]
impl<S: QuadStore> RequestHandler<NeighbourhoodRequest, NeighbourhoodResponse> for Neighbours<S> {
    async fn serve(
        &self,
        cx: Cx,
        ask: NeighbourhoodRequest,
        mut out: Responder<NeighbourhoodResponse>,
    ) -> Result<(), Error> {
        let engine = self.0.get().await?;
        let key = CollectionKey::of(&cx, &ask.collection);
        let user = user(&cx, None);
        let found = engine.neighbours(&key, user.as_deref(), ask, cx.cancel.clone());
        let found = found.await;
        out.send(found.map_err(|error| error.to_wire(FAULT))?).await
    }
}

pub(crate) struct Sources<S>(pub(crate) Arc<LeasedStore<S>>);

#[async_trait]
impl<S: QuadStore> RequestHandler<SourcesRequest, SourcesResponse> for Sources<S> {
    async fn serve(
        &self,
        cx: Cx,
        ask: SourcesRequest,
        mut out: Responder<SourcesResponse>,
    ) -> Result<(), Error> {
        let engine = self.0.get().await?;
        let key = CollectionKey::of(&cx, &ask.collection);
        let user = user(&cx, None);
        let found = engine.sources(&key, user.as_deref(), ask, cx.cancel.clone());
        let found = found.await;
        out.send(found.map_err(|error| error.to_wire(FAULT))?).await
    }
}
