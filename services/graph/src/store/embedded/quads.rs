//! The graphs of this process behind the trait: terms of the contract become RDF here, and RDF terms of the contract.

use async_trait::async_trait;
use oxigraph::model::Quad;
use tg_collections::{CollectionKey, WriteKind};
use tg_schemas::msg::{
    NeighbourhoodRequest, NeighbourhoodResponse, SourcesRequest, SourcesResponse, UserContext,
};
use tg_schemas::{Term, Triple, limits};
use tokio_util::sync::CancellationToken;

use super::EmbeddedGraph;
use super::batch::Batch;
use super::scan::Scan;
use crate::engine::convert::Repeated;
use crate::engine::pattern::{Asked, Pattern};
use crate::error::GraphError;
use crate::store::{QuadStore, SparqlAnswer, SparqlAsk, TriplePattern, TripleScan, Written};

/// From so many triples on, or from [`limits::OFFLOAD`] bytes of text in literals, preparing a write leaves the runtime's threads.
const MANY: usize = 256;

#[async_trait]
impl QuadStore for EmbeddedGraph {
    async fn write(
        &self,
        key: &CollectionKey,
        triples: Vec<Triple>,
        kind: WriteKind,
    ) -> Result<Written, GraphError> {
        add(self, key, triples, kind, Batch::insert).await
    }

    async fn load(
        &self,
        key: &CollectionKey,
        triples: Vec<Triple>,
        kind: WriteKind,
    ) -> Result<Written, GraphError> {
        add(self, key, triples, kind, Batch::load).await
    }

    async fn find(
        &self,
        key: &CollectionKey,
        user: Option<&UserContext>,
        pattern: TriplePattern,
        limit: Option<usize>,
    ) -> Result<Vec<Triple>, GraphError> {
        match read(&pattern)? {
            Asked::Nothing => Ok(Vec::new()),
            Asked::Pattern(pattern) => self.find_for(key, user, pattern, limit).await,
        }
    }

    async fn scan(
        &self,
        key: &CollectionKey,
        user: Option<&UserContext>,
        pattern: TriplePattern,
        limit: Option<usize>,
    ) -> Result<Box<dyn TripleScan>, GraphError> {
        Ok(Box::new(match read(&pattern)? {
            Asked::Nothing => Scan::new(None, limit, self.shared.scans.clone()),
            Asked::Pattern(pattern) => self.scan_for(key, user, pattern, limit).await?,
        }))
    }

    async fn sparql(
        &self,
        key: &CollectionKey,
        ask: SparqlAsk,
    ) -> Result<SparqlAnswer, GraphError> {
        Self::sparql(self, key, ask).await
    }

    async fn neighbours(
        &self,
        key: &CollectionKey,
        user: Option<&UserContext>,
        ask: NeighbourhoodRequest,
        cancel: CancellationToken,
    ) -> Result<NeighbourhoodResponse, GraphError> {
        Self::neighbours(self, key, user, ask, cancel).await
    }

    async fn sources(
        &self,
        key: &CollectionKey,
        user: Option<&UserContext>,
        ask: SourcesRequest,
        cancel: CancellationToken,
    ) -> Result<SourcesResponse, GraphError> {
        Self::sources(self, key, user, ask, cancel).await
    }
}

#[async_trait]
impl TripleScan for Scan {
    async fn next_chunk(&mut self, size: usize) -> Result<Vec<Triple>, GraphError> {
        Self::next_chunk(self, size).await
    }
}

async fn add(
    engine: &EmbeddedGraph,
    key: &CollectionKey,
    triples: Vec<Triple>,
    kind: WriteKind,
    batch: fn(Vec<Quad>) -> Batch,
) -> Result<Written, GraphError> {
    let Prepared { batch, refused } = match is_small(&triples) {
        true => prepare(&triples, batch),
        false => {
            let prepared = tokio::task::spawn_blocking(move || prepare(&triples, batch)).await;
            prepared.map_err(|_| GraphError::Closed)?
        }
    };
    let count = batch.len();
    let in_time = engine.write_from(key, batch, kind).await?;
    Ok(Written {
        kept: in_time.then_some(count),
        refused,
    })
}

fn read(pattern: &TriplePattern) -> Result<Asked, GraphError> {
    let TriplePattern { s, p, o, g } = pattern;
    Pattern::read(s.as_ref(), p.as_ref(), o.as_ref(), g.as_deref())
}

/// Whether preparing it is a matter of microseconds.
fn is_small(triples: &[Triple]) -> bool {
    let text = |triple: &Triple| match &triple.o {
        Some(Term::Literal { value, .. }) => value.len(),
        _ => 0,
    };
    triples.len() < MANY && triples.iter().map(text).sum::<usize>() < limits::OFFLOAD
}

struct Prepared {
    batch: Batch,
    refused: Vec<GraphError>,
}

fn prepare(triples: &[Triple], batch: fn(Vec<Quad>) -> Batch) -> Prepared {
    let mut quads: Vec<Quad> = Vec::with_capacity(triples.len());
    let mut refused: Vec<GraphError> = Vec::new();
    let mut repeated = Repeated::default();
    for (at, triple) in triples.iter().enumerate() {
        let fault = match repeated.quad(triple) {
            Ok(quad) => {
                quads.push(quad);
                continue;
            }
            Err(GraphError::Term { field, why }) => GraphError::Term {
                field: format!("triples[{at}].{field}"),
                why,
            },
            Err(other) => other,
        };
        refused.push(fault);
    }
    Prepared {
        batch: batch(quads),
        refused,
    }
}
