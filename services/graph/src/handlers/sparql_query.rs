//! `sparql-query`: a query's results, in one piece or streamed.

use std::sync::Arc;

use async_trait::async_trait;
use tg_collections::CollectionKey;
use tg_mesh::{Cx, LeasedStore, RequestHandler, Responder};
use tg_schemas::Error;
use tg_schemas::msg::{SparqlBinding, SparqlQueryRequest, SparqlQueryResponse};

use super::{batch, limit, user};
use crate::error::GraphError;
use crate::options::Limits;
use crate::store::{Graphs, Part, QuadStore, SparqlAnswer, SparqlAsk};

/// Rows fetched at once for an answer in one piece.
const CHUNK: usize = 500;

pub(crate) struct Sparql<S> {
    pub(crate) store: Arc<LeasedStore<S>>,
    pub(crate) limits: Limits,
}

#[async_trait]
impl<S: QuadStore> RequestHandler<SparqlQueryRequest, SparqlQueryResponse> for Sparql<S> {
    async fn serve(
        &self,
        cx: Cx,
        ask: SparqlQueryRequest,
        out: Responder<SparqlQueryResponse>,
    ) -> Result<(), Error> {
        let store = self.store.get().await?;
        let key = CollectionKey::of(&cx, &ask.collection);
        let asked = SparqlAsk {
            query: ask.query,
            graphs: Graphs {
                default: ask.default_graphs,
                named: ask.named_graphs,
            },
            limit: limit(ask.limit),
            batch: if ask.streaming {
                batch(ask.batch_size)
            } else {
                CHUNK
            },
            time: cx.deadline.left(),
            user: user(&cx, ask.user_context),
            cancel: cx.cancel.clone(),
        };
        let answer = store.sparql(&key, asked).await.map_err(wire)?;
        if ask.streaming {
            stream(answer, out).await
        } else {
            whole(answer, &self.limits, out).await
        }
    }
}

/// Faults with no type of their own happened while the query ran.
fn wire(error: GraphError) -> Error {
    error.to_wire("sparql-evaluation-error")
}

/// One part is held back until it is known whether it is the last.
async fn stream(
    mut answer: SparqlAnswer,
    mut out: Responder<SparqlQueryResponse>,
) -> Result<(), Error> {
    let mut held = empty(&answer);
    let mut first = true;
    while let Some(part) = answer.next().await.map_err(wire)? {
        if !std::mem::take(&mut first) {
            out.send(std::mem::replace(&mut held, empty(&answer)))
                .await?;
        }
        add(&mut held, part);
    }
    held.is_final = true;
    out.send(held).await
}

async fn whole(
    mut answer: SparqlAnswer,
    limits: &Limits,
    mut out: Responder<SparqlQueryResponse>,
) -> Result<(), Error> {
    let (mut all, mut size) = (empty(&answer), 0_usize);
    let (ceiling, most) = (limits.single_answer, limits.single_answer_bytes);
    while let Some((part, bytes)) = answer.next_sized().await.map_err(wire)? {
        add(&mut all, part);
        size = size.saturating_add(bytes);
        if all.bindings.len() + all.triples.len() > ceiling {
            return Err(wire(GraphError::TooMany(ceiling)));
        }
        if size > most {
            return Err(wire(GraphError::TooMuch(most >> 20)));
        }
    }
    all.is_final = true;
    out.send(all).await
}

fn empty(answer: &SparqlAnswer) -> SparqlQueryResponse {
    SparqlQueryResponse {
        query_type: answer.form.as_str().to_owned(),
        variables: answer.variables.clone(),
        is_final: false,
        ..SparqlQueryResponse::default()
    }
}

fn add(response: &mut SparqlQueryResponse, part: Part) {
    match part {
        Part::Rows(rows) => {
            let rows = rows.into_iter().map(|values| SparqlBinding { values });
            response.bindings.extend(rows);
        }
        Part::Triples(triples) => response.triples.extend(triples),
        Part::Ask(yes) => response.ask_result = yes,
    }
}
