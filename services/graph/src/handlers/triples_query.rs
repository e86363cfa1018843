//! `triples-query`: what matches a pattern, in one piece or streamed.

use std::sync::Arc;

use async_trait::async_trait;
use tg_collections::CollectionKey;
use tg_mesh::{Cx, LeasedStore, RequestHandler, Responder};
use tg_schemas::msg::{TriplesQueryRequest, TriplesQueryResponse};
use tg_schemas::{Error, Triple};

use super::{batch, limit, user};
use crate::error::GraphError;
use crate::store::{QuadStore, TriplePattern, TripleScan};

/// Wire type of faults while querying.
const FAULT: &str = "triples-query-error";
/// Triples fetched at once for a stream.
const CHUNK: usize = 1_000;

pub(crate) struct Querier<S>(pub(crate) Arc<LeasedStore<S>>);

#[async_trait]
impl<S: QuadStore> RequestHandler<TriplesQueryRequest, TriplesQueryResponse> for Querier<S> {
    async fn serve(
        &self,
        cx: Cx,
        ask: TriplesQueryRequest,
        out: Responder<TriplesQueryResponse>,
    ) -> Result<(), Error> {
        let store = self.0.get().await?;
        let key = CollectionKey::of(&cx, &ask.collection);
        let pattern = TriplePattern {
            s: ask.s.clone(),
            p: ask.p.clone(),
            o: ask.o.clone(),
            g: ask.g.clone(),
        };
        let user = user(&cx, ask.user_context.clone());
        if ask.streaming {
            let scan = store.scan(&key, user.as_deref(), pattern, limit(ask.limit));
            let scan = scan.await.map_err(|error| error.to_wire(FAULT))?;
            return stream(scan, &ask, out).await;
        }
        let found = tokio::select! {
            found = store.find(&key, user.as_deref(), pattern, limit(ask.limit)) => found,
            () = cx.cancel.cancelled() => Err(GraphError::Cancelled),
        };
        send(out, found.map_err(|error| error.to_wire(FAULT))?).await
    }
}

async fn send(mut out: Responder<TriplesQueryResponse>, triples: Vec<Triple>) -> Result<(), Error> {
    out.send(part(triples, true)).await
}

/// Batches of the asked size, or less where triples are long; one is held back until it is known whether it is the last.
async fn stream(
    mut scan: Box<dyn TripleScan>,
    ask: &TriplesQueryRequest,
    mut out: Responder<TriplesQueryResponse>,
) -> Result<(), Error> {
    let fault = |error: GraphError| error.to_wire(FAULT);
    let size = batch(ask.batch_size);
    let chunk = CHUNK.div_ceil(size) * size;
    let mut held: Option<Vec<Triple>> = None;
    loop {
        let mut found = scan.next_chunk(chunk).await.map_err(fault)?.into_iter();
        let ended = found.len() == 0;
        while found.len() > 0 {
            let next = found.by_ref().take(size).collect();
            if let Some(ready) = held.replace(next) {
                out.send(part(ready, false)).await?;
            }
        }
        if ended {
            return out.send(part(held.unwrap_or_default(), true)).await;
        }
    }
}

fn part(triples: Vec<Triple>, is_final: bool) -> TriplesQueryResponse {
    TriplesQueryResponse {
        error: None,
        triples,
        is_final,
    }
}
