//! `triples-write`: records of triples become changes of a graph.

use std::sync::Arc;

use async_trait::async_trait;
use tg_collections::{Target, ended};
use tg_mesh::{ConsumeError, Cx, LeasedStore, RecordConsumer};
use tg_runs::RunContext;
use tg_schemas::msg::Triples;
use tg_schemas::vocabulary::POLICY_GRAPH;
use tg_schemas::{Error, ErrorCode, Triple, faults};

use crate::error::GraphError;
use crate::store::QuadStore;

pub(crate) struct Writer<S>(pub(crate) Arc<LeasedStore<S>>);

#[async_trait]
impl<S: QuadStore> RecordConsumer<Triples> for Writer<S> {
    async fn consume(&self, cx: Cx, record: Triples) -> Result<(), ConsumeError> {
        let Some(target) = Target::of(&cx, record.metadata.as_ref()) else {
            return Ok(());
        };
        if !cx.headers.policies {
            without_policies(&record.triples)?;
        }
        let store = self.0.get().await?;
        let written = match cx.headers.by_hand {
            true => store.load(&target.key, record.triples, target.kind).await,
            false => store.write(&target.key, record.triples, target.kind).await,
        };
        let written = written.map_err(|error| error.to_wire(ErrorCode::Storage.as_str()))?;
        match written.kept {
            Some(count) => {
                metrics::counter!("tg_graph_triples_written_total").increment(count as u64);
                cx.effect("triples", i64::try_from(count).unwrap_or(i64::MAX));
            }
            None => cx.not_kept(ended(target.key.collection())),
        }
        refused(&written.refused).map_or(Ok(()), |error| Err(ConsumeError::Dead(error)))
    }
}

/// Policies come by an import of somebody who may write them, and in no other way: not with a document's metadata, not with a
/// core, not with what an extractor found.
fn without_policies(triples: &[Triple]) -> Result<(), ConsumeError> {
    let of_policies = |one: &Triple| one.g.as_deref() == Some(POLICY_GRAPH);
    let Some(at) = triples.iter().position(of_policies) else {
        return Ok(());
    };
    let why = format!("triples[{at}].g: policies are imported by who may configure the workspace");
    Err(ConsumeError::Dead(Error::new(ErrorCode::Forbidden, why)))
}

/// Why some triples of a record are not RDF.
fn refused(triples: &[GraphError]) -> Option<Error> {
    let text = faults::joined(triples.iter().map(ToString::to_string))?;
    metrics::counter!("tg_graph_triples_refused_total").increment(triples.len() as u64);
    Some(Error::new(ErrorCode::BadRequest, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_come_in_no_record_but_an_import_of_them() {
        let of = |graph: Option<&str>| Triple {
            g: graph.map(str::to_owned),
            ..Triple::default()
        };
        assert!(without_policies(&[of(None), of(Some("urn:graph:source"))]).is_ok());
        let told = without_policies(&[of(None), of(Some(POLICY_GRAPH))]);
        let Err(ConsumeError::Dead(error)) = told else {
            panic!("{told:?}");
        };
        assert_eq!(error.code(), ErrorCode::Forbidden);
        assert!(error.message.starts_with("triples[1].g: "), "{error}");
    }
}
