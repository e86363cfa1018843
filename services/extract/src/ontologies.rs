//! The ontologies of workspaces, kept ready, with an index of what they declare for each flow that looks into them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tg_clients::embeddings::embed;
use tg_mesh::{Cx, Derived};
use tg_schemas::Error;

use crate::engine::ontology::{Index, Ontologies, close, named_in, segments};
use crate::error::ExtractError;
use crate::options::Options;
use crate::replies::TIMEOUT;

pub(crate) use tg_schemas::determinants::ONTOLOGIES;
/// Flows whose indexes are kept ready.
const READY: usize = 64;
/// Texts of one embeddings request.
const BATCH: usize = 128;

/// An index that is made once, by whoever comes first.
type IndexCell = tokio::sync::Mutex<Option<Arc<Index>>>;
/// By workspace and flow, with the version of the ontologies.
type Indexes = HashMap<(String, String), (String, Arc<IndexCell>)>;

/// Ontologies by workspace, indexes by flow.
pub(crate) struct ReadyOntologies {
    options: Options,
    read: Derived<Ontologies>,
    indexes: Mutex<Indexes>,
}

impl ReadyOntologies {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options,
            read: Derived::default(),
            indexes: Mutex::default(),
        }
    }

    /// The ontologies of the workspace, as its configuration has them now.
    pub(crate) async fn get(&self, cx: &Cx) -> Result<Arc<Ontologies>, ExtractError> {
        let rows = [cx.config().values(cx.workspace(), ONTOLOGIES)];
        if let Some(ontologies) = self.read.get(cx.workspace(), &rows) {
            return Ok(ontologies);
        }
        let texts = rows[0].clone();
        let reading = tokio::task::spawn_blocking(move || {
            Ontologies::read(texts.iter().map(|(key, value)| (key.as_str(), &**value)))
        });
        let read = reading.await;
        let read = read.map_err(|_| ExtractError::NotRead)?;
        Ok(self.read.put(cx.workspace(), rows.into(), read))
    }

    /// Whether they are so few that a model is shown all of them.
    pub(crate) fn takes_all(&self, ontologies: &Ontologies) -> bool {
        ontologies.elements().len() < self.options.bypass_below
    }

    /// What of the ontologies the text is about.
    pub(crate) async fn choose(
        &self,
        cx: &Cx,
        ontologies: &Ontologies,
        text: &str,
    ) -> Result<BTreeSet<usize>, Error> {
        if self.takes_all(ontologies) {
            return Ok((0..ontologies.elements().len()).collect());
        }
        let mut chosen = named_in(ontologies, text);
        let sentences = embed(cx, segments(text), Some(TIMEOUT)).await?;
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
            vectors.extend(embed(cx, texts, Some(TIMEOUT)).await?.vectors);
            texts = rest;
        }
        let index = Arc::new(Index::new(model.to_owned(), vectors));
        *slot = Some(index.clone());
        Ok(index)
    }

    fn slot(&self, cx: &Cx, version: &str) -> Arc<IndexCell> {
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
        let slot = Arc::<IndexCell>::default();
        indexes.insert(key, (version.to_owned(), slot.clone()));
        slot
    }
}
