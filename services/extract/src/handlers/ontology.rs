//! `kg-extract-ontology`: what a text says in the terms of the workspace's ontologies, and nothing else.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use tg_clients::embeddings::embed;
use tg_mesh::{ConsumeError, Cx, RecordConsumer};
use tg_runs::RunContext;
use tg_schemas::msg::{Chunk, Triples};
use tg_schemas::{Error, ErrorCode};

use super::chunk::{Piece, piece};
use super::knowledge::how;
use super::ready::Ready;
use super::reply_cache::{PATIENCE, Question, ReplyCache, later};
use super::write::{TRIPLES, write};
use crate::engine::found::RECORD;
use crate::ontology::{Index, Ontologies, check, close, describe, named_in, says_something};
use crate::ontology::{segments, terms};
use crate::options::Options;

/// Config type of ontologies.
pub(super) const ONTOLOGIES: &str = "ontology";
const EXTRACTOR: &str = "kg-extract-ontology";
/// Flows whose indexes are kept ready.
const READY: usize = 64;
/// Texts of one embeddings request.
const BATCH: usize = 128;
/// Violations that a remark quotes.
const QUOTED: usize = 5;

/// An index that is made once, by whoever comes first.
type Slot = tokio::sync::Mutex<Option<Arc<Index>>>;
/// By workspace and flow, with the version of the ontologies.
type Indexes = HashMap<(String, String), (String, Arc<Slot>)>;

pub(super) struct OntologyExtractor {
    cache: Arc<ReplyCache>,
    options: Options,
    ready: Ready<Ontologies>,
    indexes: Mutex<Indexes>,
}

#[async_trait]
impl RecordConsumer<Chunk> for OntologyExtractor {
    async fn consume(&self, cx: Cx, chunk: Chunk) -> Result<(), ConsumeError> {
        let Some(piece) = piece(&cx, chunk)? else {
            return Ok(());
        };
        let ontologies = self.ontologies(&cx).await?;
        if ontologies.elements().is_empty() {
            return match ontologies.faults() {
                [] => Ok(()),
                faults => Err(ConsumeError::Dead(Error::new(
                    ErrorCode::BadRequest,
                    faults.join("; "),
                ))),
            };
        }
        let chosen = self.choose(&cx, &ontologies, &piece.text).await;
        let chosen = chosen.map_err(|error| later(&cx, error))?;
        if !chosen.is_empty() {
            self.extract(&cx, &piece, &ontologies, &chosen).await?;
        }
        self.describe(&cx, &piece, &ontologies).await
    }
}

impl OntologyExtractor {
    pub(super) fn new(cache: Arc<ReplyCache>, options: Options) -> Self {
        Self {
            cache,
            options,
            ready: Ready::default(),
            indexes: Mutex::default(),
        }
    }

    async fn ontologies(&self, cx: &Cx) -> Result<Arc<Ontologies>, Error> {
        let rows = cx.config().values(cx.workspace(), ONTOLOGIES);
        if let Some(ontologies) = self.ready.get(cx.workspace(), &rows) {
            return Ok(ontologies);
        }
        let texts = rows.clone();
        let reading = tokio::task::spawn_blocking(move || {
            Ontologies::read(texts.iter().map(|(key, value)| (key.as_str(), &**value)))
        });
        let read = reading.await;
        let read =
            read.map_err(|_| Error::new(ErrorCode::Internal, "the ontologies were not read"))?;
        Ok(self.ready.put(cx.workspace(), rows, read))
    }

    /// What of the ontologies the text is about.
    async fn choose(
        &self,
        cx: &Cx,
        ontologies: &Ontologies,
        text: &str,
    ) -> Result<BTreeSet<usize>, Error> {
        if ontologies.elements().len() < self.options.bypass_below {
            return Ok((0..ontologies.elements().len()).collect());
        }
        let mut chosen = named_in(ontologies, text);
        let sentences = embed(cx, segments(text), Some(PATIENCE)).await?;
        let index = self.index(cx, ontologies, &sentences.model).await?;
        let (top_k, threshold) = (self.options.top_k, self.options.threshold);
        chosen.extend(index.near(sentences.vectors, top_k, threshold));
        Ok(close(ontologies, &chosen))
    }

    /// The index of this flow's ontologies, by the model that its embeddings use now.
    async fn index(
        &self,
        cx: &Cx,
        ontologies: &Ontologies,
        model: &str,
    ) -> Result<Arc<Index>, Error> {
        let slot = self.slot(cx, ontologies.version());
        let mut slot = slot.lock().await;
        if let Some(index) = &*slot
            && index.model == model
        {
            return Ok(index.clone());
        }
        let mut vectors = Vec::with_capacity(ontologies.elements().len());
        let mut texts = Index::texts(ontologies);
        while !texts.is_empty() {
            let rest = texts.split_off(texts.len().min(BATCH));
            vectors.extend(embed(cx, texts, Some(PATIENCE)).await?.vectors);
            texts = rest;
        }
        let index = Arc::new(Index::new(model.to_owned(), vectors));
        *slot = Some(index.clone());
        Ok(index)
    }

    fn slot(&self, cx: &Cx, version: &str) -> Arc<Slot> {
        let key = (cx.workspace().to_owned(), cx.flow().to_owned());
        let mut indexes = self.indexes.lock();
        if let Some((known, slot)) = indexes.get(&key)
            && known == version
        {
            return slot.clone();
        }
        if indexes.len() >= READY && !indexes.contains_key(&key) {
            indexes.clear();
        }
        let slot = Arc::<Slot>::default();
        indexes.insert(key, (version.to_owned(), slot.clone()));
        slot
    }

    async fn extract(
        &self,
        cx: &Cx,
        piece: &Piece,
        ontologies: &Ontologies,
        chosen: &BTreeSet<usize>,
    ) -> Result<(), ConsumeError> {
        let question = Question {
            extractor: EXTRACTOR,
            prompts: &["extract-with-ontologies"],
            renderer: "prompt",
            text: &piece.text,
            terms: terms(ontologies, chosen),
        };
        let reply = self.cache.prompt(cx, question, says_something).await?;
        let checked = check(ontologies, &reply.items);
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
        write(cx, piece, &how(EXTRACTOR, &reply, ontology), checked.found).await
    }

    /// Writes what the ontologies say of their elements, once for each flow and collection.
    async fn describe(
        &self,
        cx: &Cx,
        piece: &Piece,
        ontologies: &Ontologies,
    ) -> Result<(), ConsumeError> {
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
            cx.record(TRIPLES, &record).await?;
        }
        let told = ledger.tell(workspace, place, version).await;
        Ok(told.map_err(Error::from)?)
    }
}
