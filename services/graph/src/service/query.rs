//! `triples-query`: what matches a pattern, in one piece or streamed.

use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{Cx, Out, OwnedStore, Serve};
use tg_schemas::msg::{TriplesQueryRequest, TriplesQueryResponse};
use tg_schemas::{Error, Triple};

use super::{batch, limit};
use crate::{Asked, CollectionKey, Engine, GraphError, Pattern};

/// Wire type of faults while querying.
const FAULT: &str = "triples-query-error";
/// Triples fetched at once for a stream.
const CHUNK: usize = 1_000;

pub(super) struct Querier(pub(super) Arc<OwnedStore<Engine>>);

#[async_trait]
impl Serve<TriplesQueryRequest, TriplesQueryResponse> for Querier {
    async fn serve(
        &self,
        cx: Cx,
        ask: TriplesQueryRequest,
        out: Out<TriplesQueryResponse>,
    ) -> Result<(), Error> {
        let engine = self.0.get().await?;
        let key = CollectionKey::of(&cx, &ask.collection);
        let answered = async {
            let asked = Pattern::read(
                ask.s.as_ref(),
                ask.p.as_ref(),
                ask.o.as_ref(),
                ask.g.as_deref(),
            )?;
            match asked {
                Asked::Nothing => Ok(Answer::Whole(Vec::new())),
                Asked::Pattern(pattern) if ask.streaming => Ok(Answer::Stream(pattern)),
                Asked::Pattern(pattern) => {
                    let found = engine.find(&key, pattern, limit(ask.limit)).await?;
                    Ok(Answer::Whole(found))
                }
            }
        };
        let answered: Result<Answer, GraphError> = tokio::select! {
            answered = answered => answered,
            () = cx.cancel.cancelled() => Err(GraphError::Cancelled),
        };
        match answered.map_err(|error| error.to_wire(FAULT))? {
            Answer::Whole(triples) => send(out, triples).await,
            Answer::Stream(pattern) => stream(&engine, &key, pattern, &ask, out).await,
        }
    }
}

enum Answer {
    Whole(Vec<Triple>),
    Stream(Pattern),
}

async fn send(mut out: Out<TriplesQueryResponse>, triples: Vec<Triple>) -> Result<(), Error> {
    out.send(part(triples, true)).await
}

/// Batches of the asked size; one is held back until it is known whether it is the last.
async fn stream(
    engine: &Engine,
    key: &CollectionKey,
    pattern: Pattern,
    ask: &TriplesQueryRequest,
    mut out: Out<TriplesQueryResponse>,
) -> Result<(), Error> {
    let fault = |error: GraphError| error.to_wire(FAULT);
    let size = batch(ask.batch_size);
    let chunk = CHUNK.div_ceil(size) * size;
    let scan = engine.scan(key, pattern, limit(ask.limit)).await;
    let mut scan = scan.map_err(fault)?;
    let mut held: Option<Vec<Triple>> = None;
    loop {
        let mut found = scan.next_chunk(chunk).await.map_err(fault)?.into_iter();
        let ended = found.len() < chunk;
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
