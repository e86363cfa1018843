//! `kg-extract-ontology`: what a text says in the terms of the workspace's ontologies, and nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{ConsumeError, Cx, LeasedStore, RecordConsumer};
use tg_runs::RunContext;
use tg_schemas::Error;
use tg_schemas::determinants::ONTOLOGY;
use tg_schemas::msg::{Chunk, Triples};
use tg_schemas::processors::kg_extract_ontology;

use crate::chunk::{Piece, piece};
use crate::engine::found::RECORD;
use crate::engine::ontology::{Ontologies, Rejected, check, describe, says_something, terms};
use crate::error::ExtractError;
use crate::ontologies::ReadyOntologies;
use crate::replies::{Question, Reply, ReplyCache};
use crate::store::{Ledger, Origin, Quarantine};
use crate::write::write;

/// Violations that a remark quotes.
const QUOTED: usize = 5;

/// Reads `input` of `kg-extract-ontology`.
pub(crate) struct OntologyExtractor {
    cache: Arc<ReplyCache>,
    store: Arc<LeasedStore<Ledger>>,
    ready: Arc<ReadyOntologies>,
}

#[async_trait]
impl RecordConsumer<Chunk> for OntologyExtractor {
    async fn consume(&self, cx: Cx, chunk: Chunk) -> Result<(), ConsumeError> {
        Ok(self.read(&cx, chunk).await?)
    }
}

impl OntologyExtractor {
    pub(crate) fn new(
        cache: Arc<ReplyCache>,
        store: Arc<LeasedStore<Ledger>>,
        ready: Arc<ReadyOntologies>,
    ) -> Self {
        Self {
            cache,
            store,
            ready,
        }
    }

    async fn read(&self, cx: &Cx, chunk: Chunk) -> Result<(), ExtractError> {
        let Some(piece) = piece(cx, &ONTOLOGY, chunk)? else {
            return Ok(());
        };
        let ontologies = self.ready.get(cx).await?;
        if ontologies.elements().is_empty() {
            return match ontologies.faults() {
                [] => Ok(()),
                faults => Err(ExtractError::Declared(faults.to_vec())),
            };
        }
        let chosen = self.ready.choose(cx, &ontologies, &piece.read).await;
        let chosen = chosen.map_err(|error| ExtractError::asked(cx, error))?;
        if !chosen.is_empty() {
            self.extract(cx, &piece, &ontologies, &chosen).await?;
        }
        self.describe(cx, &piece, &ontologies).await
    }

    async fn extract(
        &self,
        cx: &Cx,
        piece: &Piece,
        ontologies: &Ontologies,
        chosen: &BTreeSet<usize>,
    ) -> Result<(), ExtractError> {
        let question = Question {
            by: ONTOLOGY,
            text: &piece.read,
            terms: terms(ontologies, chosen),
        };
        let reply = self.cache.prompt(cx, question, says_something).await?;
        let mut checked = check(ontologies, &reply.items);
        let rejected = std::mem::take(&mut checked.rejected);
        self.reject(cx, piece, &reply, rejected).await?;
        let mut remarks = ontologies.faults().to_vec();
        if checked.violations > 0 {
            metrics::counter!("tg_extract_violations_total").increment(checked.violations as u64);
            cx.effect("violations", checked.violations as i64);
            let quoted = checked
                .told
                .iter()
                .take(QUOTED)
                .cloned()
                .collect::<Vec<_>>();
            remarks.push(format!(
                "{} statements do not fit the ontology: {}",
                checked.violations,
                quoted.join("; ")
            ));
        }
        if !remarks.is_empty() {
            cx.remark(&remarks.join("; "));
        }
        let used: BTreeSet<&str> = checked
            .used
            .iter()
            .map(|at| ontologies.ontology_of(*at))
            .collect();
        // One ontology can be named; facts from several name theirs by their predicates.
        let ontology = match used.len() {
            1 => used.first().copied(),
            _ => None,
        };
        Ok(write(cx, piece, &reply.how(&ONTOLOGY, ontology), checked.found).await?)
    }

    /// Keeps what does not fit, until it is replayed or discarded.
    async fn reject(
        &self,
        cx: &Cx,
        piece: &Piece,
        reply: &Reply,
        rejected: Vec<Rejected>,
    ) -> Result<(), ExtractError> {
        let metadata = &piece.source.metadata;
        let origin = Origin {
            flow: cx.flow().to_owned(),
            collection: metadata.collection().to_owned(),
            generation: cx.generation(metadata.collection()),
            document: metadata.root.clone(),
            chunk: piece.source.chunk.clone(),
            model: reply.model.clone(),
            prompt_version: reply.prompt_version.clone(),
            asked_at: reply.asked_at.clone(),
        };
        let store = self.store.get().await?;
        let kept = store.reject(cx.workspace_key().to_string(), origin, rejected);
        Ok(kept.await.map_err(Error::from)?)
    }

    /// Writes what the ontologies say of their elements, once for each flow and collection.
    async fn describe(
        &self,
        cx: &Cx,
        piece: &Piece,
        ontologies: &Ontologies,
    ) -> Result<(), ExtractError> {
        let ledger = self.cache.ledger().await?;
        let collection = piece.source.metadata.collection.as_str();
        let generation = cx.generation(collection);
        let place = format!("{}\n{generation}\n{collection}", cx.flow());
        let workspace = cx.workspace_key().to_string();
        let version = ontologies.version().to_owned();
        let turn = self.cache.turn(&format!("told\n{workspace}\n{place}"));
        let _held = turn.lock().await;
        let told = ledger.was_told(workspace.clone(), place.clone(), version.clone());
        if told.await.map_err(Error::from)? {
            return Ok(());
        }
        for part in describe(ontologies).chunks(RECORD) {
            let record = Triples {
                metadata: Some(piece.source.metadata.clone()),
                triples: part.to_vec(),
            };
            cx.effect("triples", part.len() as i64);
            cx.record(kg_extract_ontology::TRIPLES, &record).await?;
        }
        let told = ledger.tell(workspace, place, version).await;
        Ok(told.map_err(Error::from)?)
    }
}
