//! `kg-store`: what a flow writes to its graph and its entities' vectors is kept in the core of its
//! document, too. What comes again is there already.

use std::sync::Arc;

use async_trait::async_trait;
use tg_collections::{CollectionKey, Target};
use tg_mesh::{ConsumeError, Cx, LeasedStore, RecordConsumer};
use tg_runs::{JobId, RunContext};
use tg_schemas::msg::{GraphEmbeddings, Metadata, Triples};
use tg_schemas::{Error, Triple};

use crate::engine::key::{CoreKey, Kind};
use crate::engine::piece::{self, Piece};
use crate::store::{KnowledgeStore, Passing};

/// What questions left behind is no knowledge of a document.
const TRACES: &str = tg_schemas::vocabulary::RETRIEVAL_GRAPH;
const POLICY_GRAPH: &str = tg_schemas::vocabulary::POLICY_GRAPH;

/// Keeps what passes.
pub(crate) struct Recorder<S>(pub(crate) Arc<LeasedStore<S>>);

impl<S: KnowledgeStore> Recorder<S> {
    async fn keep(&self, cx: &Cx, of: Of, pieces: Vec<Piece>) -> Result<(), ConsumeError> {
        if pieces.is_empty() {
            return Ok(());
        }
        let cores = self.0.get().await?;
        let passing = Some(Passing {
            run: cx.run().map(JobId::to_string),
            collection: of.collection,
        });
        let kept = cores.keep(of.core, pieces, passing).await;
        let kept = kept.map_err(Error::from)?;
        metrics::counter!("tg_knowledge_pieces_kept_total").increment(kept as u64);
        Ok(())
    }

    /// Notes that a collection has policies from now on: what it has is no more for everybody. Who may write some is asked as the
    /// store of the graph asks.
    async fn note_policies(&self, cx: &Cx, record: &Triples) -> Result<(), ConsumeError> {
        let mut triples = record.triples.iter();
        let some = triples.any(|one| one.g.as_deref() == Some(POLICY_GRAPH));
        if !(some && cx.headers.policies) {
            return Ok(());
        }
        let Some(target) = Target::of(cx, record.metadata.as_ref()) else {
            return Ok(());
        };
        let cores = self.0.get().await?;
        let noted = cores.note_policies(&target.key).await;
        Ok(noted.map_err(Error::from)?)
    }
}

/// What a record belongs to.
struct Of {
    core: CoreKey,
    collection: CollectionKey,
}

/// The core that a record belongs to: its document's. A record about nothing belongs to none, and neither does one whose
/// run began with a generation of its collection that has ended since: its document went with that.
fn core(cx: &Cx, metadata: &Option<Metadata>) -> Result<Option<Of>, ConsumeError> {
    let Some(of) = metadata else { return Ok(None) };
    let Some(target) = Target::of(cx, Some(of)) else {
        metrics::counter!("tg_knowledge_late_records_total").increment(1);
        return Ok(None);
    };
    let (id, path) = match of.root.as_str() {
        "" => (of.id.as_str(), "metadata.id"),
        root => (root, "metadata.root"),
    };
    if id.is_empty() {
        return Ok(None);
    }
    let key = CoreKey::new(cx.workspace_key().as_str(), Kind::Graph, id, path);
    let core = key.map_err(ConsumeError::Dead)?;
    Ok(Some(Of {
        core,
        collection: target.key,
    }))
}

#[async_trait]
impl<S: KnowledgeStore> RecordConsumer<Triples> for Recorder<S> {
    async fn consume(&self, cx: Cx, record: Triples) -> Result<(), ConsumeError> {
        self.note_policies(&cx, &record).await?;
        let Some(of) = core(&cx, &record.metadata)? else {
            return Ok(());
        };
        let mut triples = record.triples;
        triples.retain(|triple| !is_apart(triple));
        let pieces = piece::of_triples(&triples).map_err(ConsumeError::Dead)?;
        self.keep(&cx, of, pieces).await
    }

    /// Several messages in one record are the trace of an answer ([`tg_schemas::sections`]), of which no core has anything. One whose
    /// writer may write policies is read: it may have some.
    fn passes_by(&self, cx: &Cx) -> bool {
        cx.headers.sections.is_some() && !cx.headers.policies
    }
}

/// Traces and policies are of their collection, and in no core.
fn is_apart(triple: &Triple) -> bool {
    matches!(triple.g.as_deref(), Some(TRACES | POLICY_GRAPH))
}

#[async_trait]
impl<S: KnowledgeStore> RecordConsumer<GraphEmbeddings> for Recorder<S> {
    async fn consume(&self, cx: Cx, record: GraphEmbeddings) -> Result<(), ConsumeError> {
        let Some(of) = core(&cx, &record.metadata)? else {
            return Ok(());
        };
        let about = record.metadata.map(|about| about.id).unwrap_or_default();
        let mut entities = record.entities;
        if about != of.core.id {
            // In the core nothing else says where they came from.
            for entity in &mut entities {
                if entity.chunk_id.is_empty() {
                    entity.chunk_id.clone_from(&about);
                }
            }
        }
        // A vector that is none is refused by whoever searches; here it does not hold up the others.
        let all = entities.len();
        entities.retain(|entity| entity.vector.iter().all(|number| number.is_finite()));
        if entities.len() < all {
            cx.remark("vectors that are not finite were left out of the core");
        }
        let pieces = piece::of_entities(&record.model, entities).map_err(ConsumeError::Dead)?;
        self.keep(&cx, of, pieces).await
    }
}
