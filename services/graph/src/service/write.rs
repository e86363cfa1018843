//! `triples-write`: records of triples become changes of a dataset.

use std::sync::Arc;

use async_trait::async_trait;
use oxigraph::model::Quad;
use tg_collections::Target;
use tg_mesh::{Cx, OwnedStore, Read, ReadFault};
use tg_runs::RunContext;
use tg_schemas::msg::Triples;
use tg_schemas::{Error, ErrorCode, Triple};

use crate::{Batch, Engine, GraphError, convert};

/// From so many triples on, preparing a record leaves the runtime's threads.
const LARGE: usize = 256;

pub(super) struct Writer(pub(super) Arc<OwnedStore<Engine>>);

#[async_trait]
impl Read<Triples> for Writer {
    async fn read(&self, cx: Cx, record: Triples) -> Result<(), ReadFault> {
        let Some(target) = Target::of(&cx, record.metadata.as_ref()) else {
            return Ok(());
        };
        let engine = self.0.get().await?;
        let triples = record.triples;
        let prepared = if triples.len() < LARGE {
            prepare(&triples)
        } else {
            let prepared = tokio::task::spawn_blocking(move || prepare(&triples)).await;
            prepared.map_err(|_| Error::new(ErrorCode::Internal, "the triples were not read"))?
        };
        let count = prepared.batch.len();
        let written = engine
            .write_from(&target.key, prepared.batch, target.kind)
            .await;
        if written.map_err(|error| error.to_wire(ErrorCode::Storage.as_str()))? {
            metrics::counter!("tg_graph_triples_written_total").increment(count as u64);
            cx.effect("triples", i64::try_from(count).unwrap_or(i64::MAX));
        }
        match prepared.refused {
            None => Ok(()),
            Some(refused) => Err(ReadFault::Dead(refused)),
        }
    }
}

struct Prepared {
    batch: Batch,
    /// Why some triples are not RDF. The others are written all the same.
    refused: Option<Error>,
}

fn prepare(triples: &[Triple]) -> Prepared {
    let mut quads: Vec<Quad> = Vec::with_capacity(triples.len());
    let mut faults: Vec<GraphError> = Vec::new();
    for (at, triple) in triples.iter().enumerate() {
        match convert::quad("", triple) {
            Ok(quad) => quads.push(quad),
            Err(GraphError::Term { field, why }) => faults.push(GraphError::Term {
                field: format!("triples[{at}].{field}"),
                why,
            }),
            Err(other) => faults.push(other),
        }
    }
    let refused = faults.first().map(|first| {
        metrics::counter!("tg_graph_triples_refused_total").increment(faults.len() as u64);
        let text = match faults.len() {
            1 => first.to_string(),
            count => format!("{first} (and {} more)", count - 1),
        };
        Error::new(ErrorCode::BadRequest, text)
    });
    Prepared {
        batch: Batch::insert(quads),
        refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tg_schemas::Term;

    #[test]
    fn one_bad_triple_does_not_hold_up_the_others() {
        let good = Triple::new(Term::iri("urn:s"), Term::iri("urn:p"), Term::literal("o"));
        let bad = Triple::new(Term::literal("s"), Term::iri("urn:p"), Term::literal("o"));
        let prepared = prepare(&[good.clone(), bad.clone(), good.clone(), bad]);
        assert_eq!(prepared.batch.len(), 2);
        let refused = prepared.refused.unwrap();
        assert_eq!(refused.code(), ErrorCode::BadRequest);
        assert_eq!(
            refused.message,
            "triples[1].s: a literal cannot be a subject (and 1 more)"
        );
        assert!(prepare(&[good]).refused.is_none());
    }
}
