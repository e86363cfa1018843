//! Loading a core into a collection through a flow, and taking it out again.
//!
//! The pieces are published as records of a run, a bounded number ahead of what the stores confirmed; the
//! tap on completion reports, held while the load lasts, says what they did. What is not confirmed in time
//! is published again: stores know what they have. So an answer without an error means that everything is
//! there, and nothing of the core is held in memory but what is on its way.

mod counts;
mod in_flight;
mod pump;

use std::collections::BTreeSet;
use std::time::Duration;
use tg_runs::JobId;

use tg_clients::collections::Collections;
use tg_clients::neighbours::Neighbours;
use tg_collections::CollectionKey;
use tg_mesh::Cx;
use tg_schemas::msg::{DEFAULT_COLLECTION, Metadata, Retract};
use tg_schemas::processors::knowledge::RETRACT;
use tg_schemas::{Error, FlowId, Topic, WorkspaceId};

use crate::engine::key::{CoreKey, Kind};
use crate::engine::piece::{Carried, Part, Piece};
use crate::error;
use crate::flow::Flow;
use crate::store::{Cores, Load};
pub(crate) use counts::Counts;
use pump::{Pump, Record};

/// How long the view of the configuration may take to show a collection that was made.
const SHOWN: Duration = Duration::from_secs(5);

/// One question to load or unload.
pub(crate) struct Loader<'a> {
    pub(crate) cx: &'a Cx,
    pub(crate) cores: &'a Cores,
    pub(crate) core: CoreKey,
    pub(crate) flow: String,
}

impl Loader<'_> {
    /// Loads the core. Returns when the stores have all of it.
    pub(crate) async fn load(&self, collection: &str) -> Result<Counts, Error> {
        let number = self.number().await?;
        let flow = self.flow().await?;
        // Known before anything is published.
        for part in self.parts() {
            flow.store(*part)?;
        }
        let collection = or(collection, DEFAULT_COLLECTION);
        self.ensure(collection).await?;
        let generation = self.generation(collection);
        self.policies_go_along(collection, generation).await?;
        let run = self.run("load", collection, generation);
        let load = Load {
            core: self.core.clone(),
            flow: self.flow.clone(),
            collection: collection.to_owned(),
            generation,
            run: run.to_string(),
        };
        self.cores.note_load(&load).await?;
        let metadata = self.metadata(collection);
        let make = |piece: &Piece| {
            let topic = flow.store(piece.part)?;
            let message = piece.message(metadata.clone())?;
            Ok(Some((topic, Record::Piece(message))))
        };
        self.pump(number, run, &flow, make).await
    }

    /// What is judged in one collection is not loaded into another where nothing is.
    async fn policies_go_along(&self, collection: &str, generation: i64) -> Result<(), Error> {
        if self.core.kind != Kind::Graph || !self.cores.is_judged(&self.core).await? {
            return Ok(());
        }
        let workspace = self.cx.workspace_key();
        let into = CollectionKey::new(workspace.as_str(), collection).in_generation(generation);
        match self.cores.has_policies(&into).await? {
            true => Ok(()),
            false => Err(error::loaded_past_policies(collection)),
        }
    }

    /// Takes out of every collection, or of one, what loads of this core through the flow brought in.
    pub(crate) async fn unload(&self, collection: &str) -> Result<Counts, Error> {
        let number = self.number().await?;
        let flow = self.flow().await?;
        let topic = self.retract_topic()?;
        let loads = self.cores.loads(&self.core, &self.flow, collection);
        let mut counts = Counts::from([("records".to_owned(), 0)]);
        for load in loads.await? {
            // One that was deleted since took everything with it.
            if self.generation(&load.collection) == load.generation {
                let run = self.run("unload", &load.collection, load.generation);
                let metadata = self.metadata(&load.collection);
                let make = |piece: &Piece| {
                    let record = retract(piece, &metadata)?;
                    Ok(Some((topic.clone(), Record::Retract(record))))
                };
                for (kind, count) in self.pump(number, run, &flow, make).await? {
                    *counts.entry(kind).or_default() += count;
                }
            }
            self.cores.forget_load(&load).await?;
        }
        Ok(counts)
    }

    async fn pump(
        &self,
        core: i64,
        run: JobId,
        flow: &Flow,
        make: impl Fn(&Piece) -> Result<Option<(Topic, Record)>, Error>,
    ) -> Result<Counts, Error> {
        let pump = Pump {
            cx: self.cx,
            cores: self.cores,
            core,
            run,
            epoch: flow.epoch(),
            confirmed: Neighbours::of(&self.cx.mesh).report_runs(),
        };
        pump.run(self.parts(), make).await
    }

    async fn number(&self) -> Result<i64, Error> {
        let found = self.cores.find(&self.core).await?;
        found.ok_or_else(error::no_such_core)
    }

    async fn flow(&self) -> Result<Flow, Error> {
        if self.flow.is_empty() {
            return Err(error::load("flow: is required"));
        }
        let row = || {
            let config = self.cx.config();
            config.get(self.cx.workspace(), "flow", &self.flow)
        };
        // The view may lag a moment behind who asks.
        shown(self.cx, || Flow::read(&self.flow, row().as_deref()).is_ok()).await;
        Flow::read(&self.flow, row().as_deref())
    }

    fn parts(&self) -> &'static [Part] {
        parts(self.core.kind)
    }

    /// The names as others see them: the core is what the records are about.
    fn metadata(&self, collection: &str) -> Metadata {
        Metadata {
            id: self.core.id.clone(),
            root: String::new(),
            collection: collection.to_owned(),
        }
    }

    /// The same for the same question, so that one which is asked again goes on where it was.
    fn run(&self, what: &str, collection: &str, generation: i64) -> JobId {
        let named = [
            what,
            self.core.kind.as_str(),
            &self.core.id,
            &self.flow,
            collection,
            &self.cx.id,
        ];
        let named: String = named
            .iter()
            .map(|part| format!("{}:{part}", part.len()))
            .collect();
        JobId::new(generation, self.cx.workspace_key().as_str(), &named)
    }

    fn generation(&self, collection: &str) -> i64 {
        self.cx
            .config()
            .collection_generation(self.cx.workspace(), collection)
    }

    fn is_shown(&self, collection: &str) -> bool {
        let config = self.cx.config();
        config.has_collection(self.cx.workspace(), collection)
    }

    /// Sees to it that the collection is there.
    async fn ensure(&self, collection: &str) -> Result<(), Error> {
        if self.is_shown(collection) {
            return Ok(());
        }
        let workspace = workspace(self.cx)?;
        let collections = Collections::within(self.cx, &workspace);
        collections.ensure(collection).await?;
        shown(self.cx, || self.is_shown(collection)).await;
        Ok(())
    }

    fn retract_topic(&self) -> Result<Topic, Error> {
        let flow = FlowId::new(&self.flow)
            .map_err(|_| error::load(format!("flow: there is no flow '{}'", self.flow)))?;
        Ok(RETRACT.of_flow(&workspace(self.cx)?, &flow))
    }
}

/// What a core of a kind holds, in the order in which it is handed out.
pub(crate) fn parts(kind: Kind) -> &'static [Part] {
    match kind {
        Kind::Graph => &[Part::Triples, Part::Entities],
        Kind::Document => &[Part::Chunks],
    }
}

/// What takes a piece back: triples by what they are, vectors by the chunks that they came from.
fn retract(piece: &Piece, metadata: &Metadata) -> Result<Retract, Error> {
    let mut record = Retract {
        metadata: Some(metadata.clone()),
        ..Retract::default()
    };
    match piece.message(metadata.clone())? {
        Carried::Triples(one) => record.triples = one.triples,
        Carried::Entities(one) => {
            let chunks = one.entities.iter().map(|entity| &entity.chunk_id);
            record.chunks = distinct(chunks, &metadata.id);
        }
        Carried::Chunks(one) => {
            let chunks = one.chunks.iter().map(|chunk| &chunk.chunk_id);
            record.chunks = distinct(chunks, &metadata.id);
        }
    }
    Ok(record)
}

/// Vectors without a chunk are kept as those of the core.
fn distinct<'a>(chunks: impl Iterator<Item = &'a String>, core: &str) -> Vec<String> {
    let chunks: BTreeSet<&str> = chunks.map(|chunk| or(chunk, core)).collect();
    chunks.into_iter().map(str::to_owned).collect()
}

fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

fn workspace(cx: &Cx) -> Result<WorkspaceId, Error> {
    cx.scope
        .workspace
        .clone()
        .ok_or_else(|| error::field("workspace", "is required"))
}

/// Waits (bounded) until the view of the configuration shows something.
async fn shown(cx: &Cx, holds: impl Fn() -> bool) {
    tg_clients::config::shown(cx.config(), SHOWN, holds).await;
}
